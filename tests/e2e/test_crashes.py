"""Node supervisor or master killed in the middle of training: the workers do not notice; the launcher killed as well: nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from conftest import Start
from launchers import Run, alive, until

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
    return int((directory / f"step-{rank}").read_text() or 0)


def kill_supervisor(run: Run, node: int = 0) -> None:
    """Waits until the next one goes on in its place."""
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


def test_a_signal_after_the_crash_ends_the_job_as_ever(shell: Start, tmp_path: Path) -> None:
    run = shell(STEPS, tmp_path, procs=2)
    workers = pids(tmp_path, 2)
    kill_supervisor(run)
    run.launchers[0].terminate()
    assert run.wait(30) == [1], run.err()
    assert not any(map(alive, workers))
    assert run.leftovers() == []


# A daemon of the classic kind, of each worker.
DAEMON = """
(setsid sh -c 'trap "" TERM HUP; echo $$ >> "$1/daemons"; while :; do sleep 0.05; done' d "$1" &) &
wait; exec sleep 600
"""


def test_keeper_and_supervisor_killed_together_leave_nothing(shell: Start, tmp_path: Path) -> None:
    run = shell(DAEMON, tmp_path, procs=2)
    daemons = tmp_path / "daemons"
    until(lambda: daemons.exists() and len(daemons.read_text().split()) == 2, 30, "the daemons")
    victims = [run.launchers[0].pid, run.supervisor()]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    until(lambda: run.leftovers() == [], 30, "nothing is left")
