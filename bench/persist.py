#!/usr/bin/env python3
"""How fast a snapshot in memory becomes a durable file: ours, what the disk takes, and a plain write.

Each round writes the same memory each way to a new file, in an order that turns. The file is durable
at the end: synced, and ours renamed and its directory synced, with the checksum of all bytes taken.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import harness
from harness import ROOT, Figure, Summary, short

PROBE = ROOT / "build" / "release" / "bench" / "persist_probe"
NAMES = {
    "put": "ours",
    "raw": "limit: the same blocks by O_DIRECT and fsync",
    "put-plain": "ours where there is no io_uring",
    "buffered": "write and fsync",
}


def one_round(options: argparse.Namespace, place: str, turn: int, rates, loads) -> None:
    command = [PROBE, place, options.mib, turn, options.block, options.depth]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    for line in done.stdout.splitlines():
        name, seconds, processor = line.split()
        gigabytes = options.mib * 2**20 / 1e9
        rates[name].append(gigabytes / float(seconds))
        loads[name].append(float(processor) / gigabytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="default 12")
    parser.add_argument("--mib", type=int, default=1024, help="default 1024")
    parser.add_argument("--block", type=int, default=4, metavar="MIB", help="default 4")
    parser.add_argument("--depth", type=int, default=8, help="default 8")
    parser.add_argument("--directory", default="build", help="on the disk to measure")
    options = parser.parse_args()
    rates, loads = defaultdict(list), defaultdict(list)
    with tempfile.TemporaryDirectory(dir=Path(options.directory)) as place:
        for turn in range(options.rounds):
            harness.progress(f"round {turn + 1} of {options.rounds}")
            one_round(options, place, turn, rates, loads)

    # Disks change their pace within seconds, so each round is compared with itself.
    of_limit = {
        name: Summary.of([ours / limit for ours, limit in zip(rates[name], rates["raw"])])
        for name in NAMES
    }
    rows = [
        [text, str(Summary.of(rates[name])), str(of_limit[name]), short(Summary.of(loads[name]).median)]
        for name, text in NAMES.items()
    ]
    harness.report(
        "persist",
        f"{options.mib} MiB of memory to a durable file, median (p10 – p90) of {options.rounds} in turn;"
        f" blocks of {options.block} MiB, {options.depth} at a time",
        ["", "GB/s", "of the limit", "cores per GB/s"],
        rows,
        {f"{name} GB/s": Summary.of(samples) for name, samples in rates.items()}
        | {f"{name} of the limit": summary for name, summary in of_limit.items()}
        | {f"{name} cores per GB/s": Summary.of(samples) for name, samples in loads.items()},
        figures=[
            Figure(
                f"{options.mib} MiB of memory to a durable file", "GB/s", Summary.of(rates["put"]),
                "write and fsync", Summary.of(rates["buffered"]),
                "O_DIRECT and fsync alone", Summary.of(rates["raw"]).median, more_is_better=True,
            )
        ],  # fmt: skip
    )


if __name__ == "__main__":
    main()
