"""Node supervisor or master killed in the middle of training: the workers do not notice; the launcher killed as well: nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from conftest import Start
from launchers import Launcher, Run, alive, control_group, control_groups_can_be_made, until

# A rank that counts its steps in a file, until it is told that it is enough.
STEPS = """
n=0; echo $$ > "$1/pid-$RANK.part" && mv "$1/pid-$RANK.part" "$1/pid-$RANK"
until [ -e "$1/enough" ]; do n=$((n+1)); echo "step $n of $RANK"; echo $n > "$1/step-$RANK"; sleep 0.01; done
"""

ADOPTED = "the node supervisor was restarted;"


def pids(directory: Path, world: int) -> list[int]:
    files = [directory / f"pid-{rank}" for rank in range(world)]
    until(lambda: all(f.exists() for f in files), 30, "all workers")
    return [int(f.read_text()) for f in files]


def step(directory: Path, rank: int) -> int:
    """0 before the first: a rank says that it is there before."""
    file = directory / f"step-{rank}"
    return int(file.read_text() or 0) if file.exists() else 0


def kill_supervisor(run: Run, node: int = 0) -> None:
    """Waits until the next one goes on in its place.

    Of a worker that runs already, and whose keeper has not heard of it yet, no successor can know (ADR 10): on a busy
    machine it may have written its first line by then.
    """
    until(lambda: "all workers are started" in run.err(), 30, "the keeper knows all workers")
    before = run.err(node).count(ADOPTED)
    os.kill(run.supervisor(node), signal.SIGKILL)
    until(lambda: run.err(node).count(ADOPTED) > before, 30, "another one")


def trains_on(directory: Path, world: int) -> None:
    before = [step(directory, rank) for rank in range(world)]
    until(
        lambda: all(step(directory, r) > before[r] + 5 for r in range(world)), 30, "training goes on"
    )


def test_a_killed_supervisor_is_not_noticed_by_its_workers(shell: Start, tmp_path: Path) -> None:
    """On node 0 the master dies with it, twice."""
    options = ["--tee=3", f"--log-dir={tmp_path / 'logs'}"]
    run = shell(STEPS, tmp_path, procs=2, options=options)
    workers = pids(tmp_path, 2)
    for _ in range(2):
        kill_supervisor(run)
        trains_on(tmp_path, 2)
    assert pids(tmp_path, 2) == workers
    assert all(map(alive, workers))
    (tmp_path / "enough").touch()
    assert run.wait(30) == [0], run.err()
    for rank in range(2):
        shown = [line for line in run.out().splitlines() if line.endswith(f" of {rank}")]
        steps = [int(line.split()[-3]) for line in shown]
        assert sorted(set(steps)) == list(range(1, step(tmp_path, rank) + 1)), "every line is shown"
    assert run.leftovers() == []


def test_a_worker_that_fails_while_there_is_no_supervisor_is_restarted_once(
    shell: Start, tmp_path: Path
) -> None:
    script = """
    echo $$ > "$1/pid-$RANK.part" && mv "$1/pid-$RANK.part" "$1/pid-$RANK"; [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
    if [ "$RANK" = 1 ]; then until [ -e "$1/fail" ]; do sleep 0.01; done; exit 7; fi
    exec sleep 600
    """
    run = shell(script, tmp_path, procs=2, restarts=1)
    failing = pids(tmp_path, 2)[1]
    old = run.supervisor()
    os.kill(old, signal.SIGSTOP)
    (tmp_path / "fail").touch()
    until(lambda: not alive(failing), 30, "its end")
    os.kill(old, signal.SIGKILL)
    assert run.wait(30) == [0], run.err()
    assert run.leftovers() == []


def test_of_two_nodes_each_supervisor_may_be_killed(shell: Start, tmp_path: Path) -> None:
    run = shell(STEPS, tmp_path, nodes=2, procs=1)
    workers = pids(tmp_path, 2)
    for node in (1, 0):
        kill_supervisor(run, node)
        trains_on(tmp_path, 2)
    # A machine so slow that the node is given up starts its workers anew; the job ends well all the same.
    assert pids(tmp_path, 2) == workers or "it was not back within" in run.err(0), run.err(0)
    (tmp_path / "enough").touch()
    assert run.wait(30) == [0, 0], run.err() + run.err(1)
    assert run.leftovers() == []


def test_a_token_file_that_is_gone_by_the_crash_does_not_matter(
    shell: Start, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o600)
    run = shell(STEPS, tmp_path, nodes=2, procs=1, options=[f"--token-file={token}"])
    pids(tmp_path, 2)
    token.unlink()
    for node in (1, 0):
        kill_supervisor(run, node)
    trains_on(tmp_path, 2)
    (tmp_path / "enough").touch()
    assert run.wait(30) == [0, 0], run.err() + run.err(1)


def test_a_signal_after_the_crash_ends_the_job_as_ever(shell: Start, tmp_path: Path) -> None:
    run = shell(STEPS, tmp_path, procs=2)
    workers = pids(tmp_path, 2)
    kill_supervisor(run)
    run.launchers[0].terminate()
    assert run.wait(30) == [128 + signal.SIGTERM], run.err()
    assert not any(map(alive, workers))
    assert run.leftovers() == []


# Two daemons of each worker: of the classic kind, and one that has cleared its environment.
DAEMONS = """
deaf='trap "" TERM HUP; echo $$ >> "$1"; while :; do sleep 0.05; done'
(setsid sh -c "$deaf" d "$1/daemons" &) &
(setsid env -i PATH=/usr/bin:/bin sh -c "$deaf" d "$1/bare" &) &
wait; exec sleep 600
"""


def daemons(file: Path) -> list[int]:
    until(lambda: file.exists() and len(file.read_text().split()) == 2, 30, "the daemons")
    return [int(pid) for pid in file.read_text().split()]


def leave_nothing(run: Run, victims: list[int], bare: list[int]) -> None:
    """What has cleared its environment is found where there is a control group."""
    group = control_group(bare[0])
    grouped = group != control_group(run.launchers[0].pid)
    print("with" if grouped else "without", "a control group")
    assert grouped == control_groups_can_be_made(), run.err()
    try:
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # gone with one before it
                os.kill(pid, signal.SIGKILL)
        until(lambda: run.leftovers() == [], 30, "nothing is left")
        if grouped:
            until(lambda: not any(map(alive, bare)), 30, "nor of what cannot be recognised")
            until(lambda: not group.exists(), 30, "nor a control group")
        else:
            assert all(map(alive, bare))
    finally:
        for pid in filter(alive, bare):
            os.kill(pid, signal.SIGKILL)


def test_keeper_and_supervisor_killed_together_leave_nothing(shell: Start, tmp_path: Path) -> None:
    run = shell(DAEMONS, tmp_path, procs=2)
    bare = daemons(tmp_path / "bare")
    daemons(tmp_path / "daemons")
    leave_nothing(run, [run.launchers[0].pid, run.supervisor()], bare)


def test_launchers_inside_launchers_killed_together_leave_nothing(
    shell: Start, launcher: Launcher, tmp_path: Path
) -> None:
    """Of all their processes only the outer launcher's last one is spared."""
    inner = tmp_path / "inner.sh"
    inner.write_text(f"#!/bin/sh\n{DAEMONS}")
    inner.chmod(0o755)
    command = f'exec {launcher.program} --standalone --no-python --nproc-per-node=1 {inner} "$1"'
    run = shell(command, tmp_path, procs=2)
    bare = daemons(tmp_path / "bare")
    classic = daemons(tmp_path / "daemons")
    spared = {run.part("troupe-reaper"), *bare, *classic}
    leave_nothing(run, [pid for pid in run.leftovers() if pid not in spared], bare)


def test_the_machine_of_the_master_that_is_back_at_once_costs_no_restart(
    shell: Start, tmp_path: Path
) -> None:
    run = shell(STEPS, tmp_path, nodes=2, options=[f"--journal={tmp_path / 'journal'}"])
    gone = pids(tmp_path, 2)
    head = run.launchers.pop(0)
    head.kill()
    head.wait()
    until(lambda: not alive(gone[0]), 30, "the end of its worker")
    (tmp_path / "pid-0").unlink()
    run.start_node(0)
    pids(tmp_path, 2)
    trains_on(tmp_path, 2)
    (tmp_path / "enough").touch()
    assert run.wait(30) == [0, 0], run.err() + run.err(1)
    assert "node node-0 is lost: a newer node supervisor of this name is here" in run.err()
    assert "not counted against --max-restarts" in run.err()


def test_what_is_killed_altogether_is_ended_by_the_next_launcher(
    shell: Start, tmp_path: Path
) -> None:
    run = shell(DAEMONS, tmp_path, procs=2)
    left = daemons(tmp_path / "daemons")
    bare = daemons(tmp_path / "bare")
    grouped = control_group(bare[0]) != control_group(run.launchers[0].pid)
    # The last process is stopped first, so that it cannot do its work before it is killed.
    os.kill(run.part("troupe-reaper"), signal.SIGSTOP)
    for pid in (run.launchers[0].pid, run.supervisor(), run.part("troupe-reaper")):
        os.kill(pid, signal.SIGKILL)
    run.launchers[0].wait()
    assert any(map(alive, left))
    try:
        following = shell('until [ -e "$1/enough" ]; do sleep 0.02; done', tmp_path)
        until(lambda: not any(map(alive, left)), 30, "no daemon is left")
        if grouped:
            until(lambda: not any(map(alive, bare)), 30, "nor what cannot be recognised")
        (tmp_path / "enough").touch()
        assert following.wait(30) == [0], following.err()
    finally:
        for pid in filter(alive, bare):
            os.kill(pid, signal.SIGKILL)
