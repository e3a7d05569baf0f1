#!/usr/bin/env python3
"""From launch to the first line of a plain Python worker: bare interpreter, ours, torchrun."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import PYTHON, Launcher, Run, base_environment

# The worker's first line: when it ran. CLOCK_MONOTONIC is one clock for all processes.
WORKER = "import sys, time\nopen(sys.argv[1], 'w').write(str(time.monotonic_ns()))\n"


def bare_ms(script: Path, stamp: Path) -> float:
    began = time.monotonic_ns()
    subprocess.run([PYTHON, "-u", script, stamp], env=base_environment(), check=True)
    return (int(stamp.read_text()) - began) / 1e6


def exit_of(process: subprocess.Popen, within: float) -> int:
    """The exit code, as soon as there is one: Popen.wait with a limit looks ever more rarely."""
    watched = os.pidfd_open(process.pid)
    try:
        if not select.select([watched], [], [], within)[0]:
            raise TimeoutError(f"a launcher did not end within {within:g} s")
    finally:
        os.close(watched)
    return process.wait()


def launched_ms(launcher: Launcher, script: Path, stamp: Path) -> tuple[float, float]:
    """Launch to first line, and first line to the launcher's end."""
    began = time.monotonic_ns()
    with Run(launcher, [str(script), str(stamp)], stamp.parent) as run:
        codes = [exit_of(process, within=60) for process in run.launchers]
        ended = time.monotonic_ns()
    if codes != [0]:
        raise RuntimeError(f"{launcher.name} ended with {codes}:\n{run.err()}")
    first_line = int(stamp.read_text())
    return (first_line - began) / 1e6, (ended - first_line) / 1e6


def main() -> None:
    chosen = harness.options(__doc__, rounds=15)
    first, after = defaultdict(list), defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        script, stamp = Path(directory) / "worker.py", Path(directory) / "stamp"
        script.write_text(WORKER)
        for turn in range(-1, chosen.rounds):  # turn -1 warms the caches and is not counted
            harness.progress(f"round {turn + 1} of {chosen.rounds}")
            samples = {"bare python3": (bare_ms(script, stamp), 0.0)}
            for launcher in chosen.launchers:
                samples[launcher.name] = launched_ms(launcher, script, stamp)
            if turn >= 0:
                for name, (to_line, to_end) in samples.items():
                    first[name].append(to_line)
                    after[name].append(to_end)

    summaries = {name: Summary.of(samples) for name, samples in first.items()}
    ends = {name: Summary.of(samples) for name, samples in after.items()}
    bare = summaries["bare python3"].median
    ours, peer = harness.peer_of(chosen.launchers)
    rows = [
        [
            name,
            str(summary),
            harness.short(summary.median - bare) if name != "bare python3" else "–",
            str(ends[name]) if name != "bare python3" else "–",
            ratio(summaries.get(ours), summary) if ours else "–",
        ]
        for name, summary in summaries.items()
    ]
    figures = []
    if ours:
        theirs = (peer or "", summaries.get(peer))
        figures += [
            Figure("launch → the first line of a Python worker", "ms", summaries[ours], *theirs, "python3 without a launcher", bare),
            Figure("a worker's first and only line → the launcher's exit", "ms", ends[ours], peer or "", ends.get(peer)),
        ]
    data = {"launch_ms": {n: vars(s) for n, s in summaries.items()}}
    data["first_line_to_exit_ms"] = {n: vars(s) for n, s in ends.items()}
    if ours and peer:
        beyond = summaries[ours].median - bare
        data["beyond_bare_ms"] = beyond
        data["ratio"] = summaries[peer].median / summaries[ours].median
    harness.report(
        "launch",
        f"Launch to the worker's first line, ms: median (p10 – p90) of {chosen.rounds} in turn",
        ["", "to first line", "beyond bare", "first line to exit", "relative to ours"],
        rows,
        data,
        ["limit: the bare interpreter; a launcher can only add to it. Goal: 40 ms beyond it."],
        figures,
    )


if __name__ == "__main__":
    main()
