#!/usr/bin/env python3
"""From a worker's exit to its replacements' first act: one node and two, ours and torchrun."""

from __future__ import annotations

import os
import select
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import ROOT, Launcher, Run, until

# The same worker in Python, for what a user sees; its first act is the first line of the script.
PYTHON_WORKER = """import time
started = time.monotonic_ns()
import os, signal, sys
path, rank, world = sys.argv[1], os.environ["RANK"], int(os.environ["WORLD_SIZE"])
def append(what, when):
    with open(path, "a") as file:
        file.write(f"{what} {rank} {when}\\n")
def count(what):
    return sum(line.startswith(what) for line in open(path))
append("start", started)
exits = count("exit")
if rank != "0":
    signal.pause()
while count("start") < (exits + 1) * world:
    time.sleep(0.001)
time.sleep(0.25 + started // 1000 % 100 / 1000)
append("exit", time.monotonic_ns())
os._exit(7)
"""


STAMP = ROOT / "build" / "release" / "bench" / "stamp"


def restart_times(stamps: str, world: int) -> list[float]:
    """For each exit, the milliseconds until the last process of the next world had started."""
    starts, exits = [], []
    for line in stamps.splitlines():
        what, _, when = line.split()
        (starts if what == "start" else exits).append(int(when))
    worlds = [starts[i : i + world] for i in range(0, len(starts), world)]
    complete = [w for w in worlds[1:] if len(w) == world]
    return [(max(next_world) - left) / 1e6 for left, next_world in zip(exits, complete)]


def measure(
    launcher: Launcher, worker: list[str], nodes: int, python: bool, rounds: int
) -> list[float]:
    """One job that is made to restart `rounds` times."""
    procs, world = 2, 2 * nodes
    with tempfile.TemporaryDirectory() as directory:
        stamps = Path(directory) / "stamps"
        stamps.touch()
        program = [worker[0], str(stamps), *worker[1:]]
        job = Run(launcher, program, Path(directory), nodes, procs, rounds * 2, python)
        with job as run:

            def enough() -> bool:
                ended = [n for n, p in enumerate(run.launchers) if p.poll() is not None]
                if ended:
                    raise RuntimeError(f"{launcher.name} ended early:\n{run.err(ended[0])}")
                return stamps.read_text().count("start") >= (rounds + 1) * world

            until(enough, 60 + 5 * rounds, f"{rounds} restarts under {launcher.name}")
        return restart_times(stamps.read_text(), world)[:rounds]


def limit(worker: Path, rounds: int) -> list[float]:
    """What the kernel needs: a pidfd says that a child has ended, four processes are started."""
    samples = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            stamps = Path(directory) / "stamps"
            alone = {"RANK": "0", "WORLD_SIZE": "1"}
            dying = os.posix_spawn(worker, [worker, stamps], alone)
            pidfd = os.pidfd_open(dying)
            select.select([pidfd], [], [])
            os.close(pidfd)
            arguments = [worker, str(stamps)]
            others = [os.posix_spawn(worker, arguments, {"RANK": "1"}) for _ in range(2)]
            os.waitpid(dying, 0)
            until(lambda: stamps.read_text().count("start") == 3, 10, "two processes")
            for pid in others:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            lines = [line.split() for line in stamps.read_text().splitlines()]
            left = next(int(when) for what, _, when in lines if what == "exit")
            samples.append((max(int(when) for *_, when in lines[2:]) - left) / 1e6)
    return samples


def main() -> None:
    chosen = harness.options(__doc__, rounds=12)
    if not STAMP.exists():
        sys.exit(f"{STAMP} does not exist; `./x build release` makes it")
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "worker.py"
        script.write_text(PYTHON_WORKER)
        cases = {
            "1 node × 2, native worker": ([str(STAMP)], 1, False),
            "1 node × 2, Python worker": ([str(script)], 1, True),
            "2 nodes × 2, native worker": ([str(STAMP)], 2, False),
            "2 nodes × 2, native, peers fail too": ([str(STAMP), "peers-fail"], 2, False),
            "2 nodes × 2, Python worker": ([str(script)], 2, True),
        }
        # Two jobs each, in turn, so that a change of the machine's mood does not fall on one side.
        for half in (chosen.rounds - chosen.rounds // 2, chosen.rounds // 2):
            for case, (worker, nodes, python) in cases.items():
                for launcher in chosen.launchers:
                    harness.progress(f"{case}: {launcher.name}, {half} restarts")
                    samples[case][launcher.name] += measure(launcher, worker, nodes, python, half)
        floor = Summary.of(limit(STAMP, chosen.rounds))

    ours, peer = harness.peer_of(chosen.launchers)
    rows, data, figures = [], {"limit_ms": floor}, []
    for case, by_launcher in samples.items():
        summaries = {name: Summary.of(values) for name, values in by_launcher.items()}
        shown = [str(summaries[one.name]) for one in chosen.launchers]
        rows.append([case, *shown, ratio(summaries.get(ours), summaries.get(peer))])
        data[case] = {name: vars(summary) for name, summary in summaries.items()}
        if ours:
            # An interpreter's start is part of a Python worker's, and the limit has none.
            limits = ("two bare processes", floor.median) if "native" in case else ()
            name = f"a worker's exit → all workers started anew, {case}"
            figures.append(Figure(name, "ms", summaries[ours], peer or "", summaries.get(peer), *limits))
    harness.report(
        "restart",
        f"Worker exit to last replacement's first act, ms: median (p10 – p90) of {chosen.rounds}",
        ["", *(one.name for one in chosen.launchers), "peer : ours"],
        rows,
        data,
        [
            f"limit: {floor} ms from exit to two bare processes, by pidfd and posix_spawn without "
            "a launcher.\nGoals for native workers: 20 ms on one node, 100 ms on two.",
        ],
        figures,
    )


if __name__ == "__main__":
    main()
