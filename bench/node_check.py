#!/usr/bin/env python3
"""What --network-check adds to a start: two nodes on loopback, launch of both → the first worker's first line. Only ours.

DLRover's check adds 13 s to such a start; that was measured by itself, not in turn with ours.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import harness
from harness import Summary
from launch import exit_of
from launchers import Run, actor_launcher

NODES = 2
WITHIN = 60
WORKER = "import os, sys, time\nopen(sys.argv[1] + os.environ['RANK'], 'w').write(str(time.monotonic_ns()))\n"
VARIANTS = {"without the check": [], "with --network-check": ["--network-check"]}


def first_line_ms(directory: Path, options: list[str]) -> float:
    script, stamp = directory / "worker.py", directory / "stamp-"
    script.write_text(WORKER)
    began = time.monotonic_ns()
    with Run(actor_launcher(), [str(script), str(stamp)], directory, NODES, options=options) as run:
        codes = [exit_of(process, WITHIN) for process in run.launchers]
        if codes != [0] * NODES:
            raise RuntimeError(f"the job ended with {codes}:\n{run.err()}")
    lines = [int((directory / f"stamp-{rank}").read_text()) for rank in range(NODES)]
    return (min(lines) - began) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    chosen = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for turn in range(-1, chosen.rounds):  # turn -1 warms the caches and is not counted
        for name, options in VARIANTS.items():
            with tempfile.TemporaryDirectory() as directory:
                took = first_line_ms(Path(directory), options)
            harness.progress(f"{turn + 1} of {chosen.rounds}: {name}: {took:.0f} ms")
            if turn >= 0:
                found[name].append(took)
    without, checked = found.values()
    found["what the check adds"] = [b - a for a, b in zip(without, checked, strict=True)]
    summaries = {f"{NODES} nodes, {name} [ms]": Summary.of(values) for name, values in found.items()}
    harness.report(
        "node_check",
        f"Launch of two nodes to the first worker's line, ms: median (p10 – p90) of {chosen.rounds} in turn, and the range",
        ["", "ours", "range"],
        [
            [what, str(one), f"{harness.short(min(values))} – {harness.short(max(values))}"]
            for (what, one), values in zip(summaries.items(), found.values(), strict=True)
        ],
        summaries,
        ["Goal: the check adds at most 1,000 ms. Both nodes are on this machine, so their probes share its processors."],
        harness.figures_without_peer(summaries),
    )


if __name__ == "__main__":
    main()
