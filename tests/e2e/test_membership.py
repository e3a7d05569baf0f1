"""Nodes that die, fall silent and come back, as real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import Start
from launchers import Run, alive, free_port, freeze, until

WITHIN = 60.0  # the product's own time limits are those of its lease, 2 s
DEFAULT_LEASE = {"PET_RDZV_CONF": ""}
WORKER = 'echo "$WORLD_SIZE $$" >> "$1"; exec sleep 600'


def worlds(stamps: Path) -> list[tuple[int, int]]:
    """World size and pid of every worker that was started."""
    lines = stamps.read_text().splitlines() if stamps.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def two_nodes(shell: Start, stamps: Path) -> Run:
    # One after the other: the first one runs the master, and it is not to be harmed.
    run = shell(
        WORKER, stamps, port=free_port(), options=["--nnodes=1:2"], environment=DEFAULT_LEASE
    )
    says(run, 0, "node node-0 joined")
    run.start_node(1)
    until(lambda: [s for s, _ in worlds(stamps)][-2:] == [2, 2], WITHIN, "both workers run")
    return run


def says(run: Run, node: int, what: str, times: int = 1) -> None:
    until(lambda: run.err(node).count(what) >= times, WITHIN, f"{what}\n{run.err(node)}")


def goes_on_alone(stamps: Path) -> None:
    until(lambda: worlds(stamps)[-1][0] == 1, WITHIN, "the survivor's worker runs alone")


def test_a_node_that_is_killed_is_acted_on_at_once(shell: Start, tmp_path: Path) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    os.kill(run.launchers[1].pid, signal.SIGKILL)
    goes_on_alone(stamps)
    says(run, 0, "not back within 500 ms")


def test_a_node_that_froze_finds_itself_fenced_and_joins_as_new(
    shell: Start, tmp_path: Path
) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    frozen, came = run.supervisor(1), run.err(0).count("node node-1 joined")
    freeze(frozen)
    goes_on_alone(stamps)
    says(run, 0, "nothing heard for")
    old = [pid for size, pid in worlds(stamps) if size == 2]
    assert any(map(alive, old)), "the worker of a stopped node supervisor was ended"
    os.kill(frozen, signal.SIGCONT)
    says(run, 1, "the master gave this node up")
    says(run, 0, "node node-1 joined", came + 1)
    until(lambda: not any(map(alive, old)), WITHIN, "the old generation's workers are gone")


class Stalls:
    """How long this machine lets a thread wait that asks for a processor, each processor by itself."""

    def __enter__(self) -> Stalls:
        self.longest, self._over = 0.0, threading.Event()
        watches = [threading.Thread(target=self._watch, args=(c,)) for c in os.sched_getaffinity(0)]
        self._watches = watches
        for watch in watches:
            watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for watch in self._watches:
            watch.join()

    def _watch(self, processor: int) -> None:
        os.sched_setaffinity(0, {processor})
        before = time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            self.longest, before = max(self.longest, now - before), now


def disturbance(run: Run, stamps: Path) -> str:
    """What is said or done about nodes that pause for a second while all processors are busy."""
    before = worlds(stamps)
    hogs = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * os.cpu_count())
    ]
    try:
        for paused in (run.supervisor(1), run.supervisor(0), run.supervisor(1)):
            os.kill(paused, signal.SIGSTOP)
            time.sleep(1)  # the pause
            os.kill(paused, signal.SIGCONT)
            time.sleep(0.5)  # as long as a beat takes at most; what has to be seen is nothing
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    said = run.err(0) + run.err(1)
    harmed = re.search(r"is gone|node \S+ is lost|no link", said)
    return said if harmed or worlds(stamps) != before else ""


def test_a_pause_of_a_second_under_full_load_costs_nobody_its_place(
    shell: Start, tmp_path: Path
) -> None:
    for attempt in range(5):
        stamps = tmp_path / f"stamps-{attempt}"
        run = two_nodes(shell, stamps)
        with Stalls() as stalls:
            found = disturbance(run, stamps)
        # Where the machine itself stalled, the pause was a longer one, and nothing has been shown.
        if not found or stalls.longest < 0.2:
            break
        run.__exit__()
    assert not found, f"{found}\nstalls of {stalls.longest:.2f} s"


# Rank 1's worker needs a while to end; each worker says which earlier ones of its rank still live.
SLOW_TO_END = """
for earlier in $(cat "$1/rank-$RANK" 2>/dev/null); do
  kill -0 "$earlier" 2>/dev/null && echo "rank $RANK is trained twice" >> "$1/twice"
done
echo $$ >> "$1/rank-$RANK"
trap '[ "$RANK" = 1 ] && sleep 2; exit 0' TERM
while :; do sleep 0.02; done
"""


@pytest.mark.parametrize("nnodes", ["2", "1:2"])
def test_a_second_launcher_of_a_node_waits_until_the_first_one_s_workers_have_ended(
    shell: Start, tmp_path: Path, nnodes: str
) -> None:
    run = shell(SLOW_TO_END, tmp_path, port=free_port(), options=[f"--nnodes={nnodes}"])
    run.start_node(1)
    rank_1 = tmp_path / "rank-1"
    until(rank_1.exists, WITHIN, "rank 1 runs")
    run.start_node(1)
    until(lambda: len(rank_1.read_text().split()) == 2, WITHIN, f"its next life\n{run.err(0)}")
    assert not (tmp_path / "twice").exists()
    assert run.launchers[1].wait(WITHIN) == 1
    says(run, 0, "another node supervisor with the name 'node-1' has come")


def test_a_stopped_launcher_holds_its_successor_up_for_no_longer_than_a_lease(
    shell: Start, tmp_path: Path
) -> None:
    stamps = tmp_path / "stamps"
    run = two_nodes(shell, stamps)
    freeze(run.supervisor(1))
    began = time.monotonic()
    run.start_node(1)
    says(run, 0, "the earlier node supervisor with the name 'node-1' does not answer")
    assert time.monotonic() - began < 4
    until(lambda: [s for s, _ in worlds(stamps)][-2:] == [2, 2], WITHIN, "both train again")
