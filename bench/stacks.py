#!/usr/bin/env python3
"""actor-stacks: dumps of 4,096 ranks to pictures, on one processor and on all; and the merge of a gather in memory."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import harness
from harness import Figure, Summary
from launchers import ROOT

BUILD = ROOT / "build" / "release"
PROBE = BUILD / "bench" / "stack_probe"
STACKS = BUILD / "bin" / "actor-stacks"
RANKS, GATHERED = 4_096, 1_000
KINDS = ("troupe", "xpu_timer")


def run(path: Path, output: Path, processors: Sequence[int]) -> dict[str, float]:
    """ms from start to end and of processor time, and the most memory that was resident, in MiB."""
    began = time.monotonic()
    with subprocess.Popen(
        [STACKS, "--path", path, "--output", output],
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        took = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"actor-stacks ended with {process.returncode}")
    return {
        "[ms]": took * 1e3,
        "[ms of processor time]": (usage.ru_utime + usage.ru_stime) * 1e3,
        "[MiB]": usage.ru_maxrss / 1024,
    }


def gather() -> float:
    done = subprocess.run(
        [PROBE, "gather", str(GATHERED)], capture_output=True, text=True, check=True, timeout=300
    )
    return float(done.stdout)


def measure(place: Path, rounds: int) -> dict[str, list[float]]:
    all_of_them = sorted(os.sched_getaffinity(0))
    found: dict[str, list[float]] = defaultdict(list)
    for kind in KINDS:
        (place / kind).mkdir()
        subprocess.run([PROBE, "write", place / kind, str(RANKS), kind], check=True)
    for turn in range(rounds):
        harness.progress(f"round {turn + 1} of {rounds}")
        for kind in KINDS:
            for name, where in (
                ("one processor", all_of_them[:1]),
                (f"{len(all_of_them)} processors", all_of_them),
            ):
                for unit, value in run(place / kind, place / "out", where).items():
                    what = f"{RANKS:,} dumps of {kind} to pictures, {name} {unit}"
                    found[what].append(value)
        found[f"{GATHERED:,} ranks' messages to pictures [ms]"].append(gather() * 1e3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measure(Path(place), chosen.rounds)
    summaries = {what: Summary.of(values) for what, values in found.items()}
    shown = [f"{RANKS:,} dumps of {kind} to pictures, one processor [ms]" for kind in KINDS]
    shown.append(f"{GATHERED:,} ranks' messages to pictures [ms]")
    figures = [
        Figure("stacks: " + what.removesuffix(" [ms]"), "ms", summaries[what]) for what in shown
    ]
    harness.report(
        "stacks",
        f"actor-stacks: median (p10 – p90) of {chosen.rounds}",
        ["", "ours"],
        [[what, str(one)] for what, one in summaries.items()],
        summaries,
        ["Each rank has 40 threads of 60 native frames, and 8 of them 20 Python frames; the files are in the page cache."],
        figures,
    )


if __name__ == "__main__":
    main()
