"""Nodes come, die and stand by while a job runs."""

from __future__ import annotations

import time
from pathlib import Path

from conftest import Start
from launchers import Run, free_port, until

WITHIN = 60.0  # processes are started on a busy machine

# Says where it is, and works until it is told to finish.
WORKER = """
echo "$TROUPE_GENERATION $RANK/$WORLD_SIZE $(date +%s%3N)" >> "$1/node-of-$PPID"
while [ ! -e "$1/finish" ]; do sleep 0.02; done
"""


def worlds(directory: Path, launcher: int) -> list[str]:
    """What the worker of this launcher was in each generation: "rank/size"."""
    file = directory / f"node-of-{launcher}"
    return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def appears(run: Run, directory: Path, node: int, world: str) -> None:
    until(
        lambda: worlds(directory, run.launchers[node].pid)[-1:] == [world],
        WITHIN,
        f"node {node} is {world}\n{run.err()}",
    )


def test_a_lone_start_a_join_a_standby_and_a_loss(shell: Start, tmp_path: Path) -> None:
    run = shell(
        WORKER, tmp_path, port=free_port(), ranked=False, options=["--nnodes=1:2"], restarts=0
    )
    began = time.monotonic()
    appears(run, tmp_path, 0, "0/1")
    # torchrun waits 30 s for it.
    assert time.monotonic() - began < 20, "the job waits for a node that may never come"

    run.start_node(1)
    appears(run, tmp_path, 0, "0/2")
    appears(run, tmp_path, 1, "1/2")

    run.start_node(2)
    until(lambda: "stands by" in run.err(2), WITHIN, "the third is told that it is a standby")

    run.launchers[1].kill()
    appears(run, tmp_path, 2, "1/2")
    survivor = run.launchers[0].pid
    until(lambda: len(worlds(tmp_path, survivor)) == 3, WITHIN, "the survivor's third generation")
    assert worlds(tmp_path, survivor) == ["0/1", "0/2", "0/2"]

    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, -9, 0], run.err()


def test_a_node_whose_restarts_are_used_up_leaves_where_the_others_suffice(shell: Start, tmp_path: Path) -> None:
    # Never twice in the same way.
    failing = '[ "$GROUP_RANK" = 1 ] && exit $((TROUPE_GENERATION % 100 + 20))\n'
    run = shell(failing + WORKER, tmp_path, port=free_port(), ranked=False, options=["--nnodes=1:2"], restarts=1)
    appears(run, tmp_path, 0, "0/1")
    run.start_node(1)
    assert run.launchers[1].wait(WITHIN) == 1
    assert "the only restart of node" in run.err(1)
    until(lambda: "leaves, and the others train on without it" in run.err(), WITHIN, "the line")
    appears(run, tmp_path, 0, "0/1")
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, 1], run.err()


def test_the_restarts_of_a_whole_job_end_it(shell: Start) -> None:
    run = shell("exit $((TROUPE_GENERATION % 100 + 20))", options=["--job-restarts=2"], restarts=9)
    assert run.wait(WITHIN) == [1]
    assert "2 restarts of the job are used up (--job-restarts)" in run.err()


def test_no_progress_ends_the_job_with_a_code_of_its_own(shell: Start) -> None:
    run = shell("exit 5", options=["--no-progress-limit=3"])
    assert run.wait(WITHIN) == [3]
    assert "3 generations in a row failed" in run.err()


def test_the_kind_of_an_end_is_in_the_summary(shell: Start) -> None:
    run = shell("exit 201")
    assert run.wait(WITHIN) == [1]
    assert "class     : hardware" in run.err()


def test_hardware_is_known_by_the_end_of_a_worker_s_log(shell: Start) -> None:
    sentence = "NCCL WARN Cuda failure 'uncorrectable ECC error encountered'"
    run = shell(f'echo "{sentence}" >&2; exit 1', options=["--tee=3"])
    assert run.wait(WITHIN) == [1]
    assert f"  class     : hardware\n  known by  : {sentence}\n" in run.err()
