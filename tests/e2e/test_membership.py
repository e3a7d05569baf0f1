"""Nodes that die, fall silent and come back, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import Start
from launchers import Run, alive, free_port, until

WORKER = 'echo "$WORLD_SIZE $$" >> "$1"; exec sleep 600'


def worlds(stamps: Path) -> list[tuple[int, int]]:
    """World size and pid of every worker that was started."""
    lines = stamps.read_text().splitlines() if stamps.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def two_nodes(shell: Start, stamps: Path) -> Run:
    # One after the other: whoever is first runs the master, and it is not to be harmed.
    run = shell(WORKER, stamps, port=free_port(), options=["--nnodes=1:2"])
    until(lambda: "node node-0 is here" in run.err(0), 30, "the first node has its master")
    run.start_node(1)
    until(lambda: [s for s, _ in worlds(stamps)][-2:] == [2, 2], 60, "both workers run")
    return run


def goes_on_alone(stamps: Path) -> None:
    until(lambda: worlds(stamps)[-1][0] == 1, 15, "the survivor's worker runs alone")


def test_a_node_that_is_killed_is_acted_on_at_once(shell: Start, tmp_path: Path) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    os.kill(run.launchers[1].pid, signal.SIGKILL)
    goes_on_alone(stamps)
    assert "not back within 500 ms" in run.err(0)


def test_a_node_that_froze_finds_itself_fenced_and_joins_as_new(
    shell: Start, tmp_path: Path
) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    frozen = run.launchers[1].pid
    os.kill(frozen, signal.SIGSTOP)
    goes_on_alone(stamps)
    assert "nothing heard for" in run.err(0)
    old = [pid for size, pid in worlds(stamps) if size == 2]
    assert any(map(alive, old)), "nobody can end the worker of a launcher that is stopped"
    os.kill(frozen, signal.SIGCONT)
    until(lambda: "the master gave this node up" in run.err(1), 15, "the node is told")
    until(lambda: run.err(0).count("node node-1 is here") == 2, 15, "the node has joined anew")
    until(lambda: not any(map(alive, old)), 15, "the old generation's workers are gone")


def test_a_pause_of_a_second_under_full_load_costs_nobody_its_place(
    shell: Start, tmp_path: Path
) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    before = worlds(stamps)
    hogs = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * os.cpu_count())
    ]
    try:
        for paused in (run.launchers[1].pid, run.launchers[0].pid, run.launchers[1].pid):
            os.kill(paused, signal.SIGSTOP)
            time.sleep(1)  # the pause
            os.kill(paused, signal.SIGCONT)
            time.sleep(0.5)  # as long as a beat takes at most; what has to be seen is nothing
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    said = run.err(0) + run.err(1)
    assert "is gone" not in said and "is lost" not in said and "no link" not in said, said
    assert worlds(stamps) == before
