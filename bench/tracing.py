#!/usr/bin/env python3
"""What the tracing library adds to a call of CUDA, NCCL or cuBLAS, and to a process that makes none.

The libraries below it do nothing, so all that is measured is its own; what a real driver takes for
two events comes on top of a timed call. Each round runs both ways in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import harness
from harness import Figure, Summary

BUILD = Path(__file__).resolve().parents[1] / "build" / "release"
LIBRARY = BUILD / "libexec" / "troupe" / "libtroupe_trace.so"
CALLS = BUILD / "bench" / "trace_calls"
EVERY = ("TROUPE_TRACE_GEMM_EVERY", "TROUPE_TRACE_COPY_EVERY", "TROUPE_TRACE_LAUNCH_EVERY")
WAYS = {
    "direct": None,
    "as it is": {},
    "all timed": {name: "1" for name in EVERY},
}
SHELLS = 100


def environment(way: dict[str, str] | None) -> dict[str, str]:
    base = {"PATH": os.environ["PATH"]}
    return base if way is None else base | {"LD_PRELOAD": str(LIBRARY)} | way


def shell_us(way: dict[str, str] | None) -> float:
    """A process that knows nothing of CUDA, from its start to its end: the median of a round."""
    took = []
    for _ in range(SHELLS):
        began = time.perf_counter()
        subprocess.run(["/bin/bash", "-c", ":"], env=environment(way), check=True)
        took.append(1e6 * (time.perf_counter() - began))
    return sorted(took)[SHELLS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    rounds = parser.parse_args().rounds
    seen: dict[str, list[float]] = {}
    for turn in range(rounds):
        harness.progress(f"round {turn + 1} of {rounds}")
        for name, way in WAYS.items():
            told = subprocess.run([CALLS], env=environment(way), capture_output=True, check=True)
            for call, ns in json.loads(told.stdout).items():
                seen.setdefault(f"{call}, {name} [ns]", []).append(ns)
            if name != "all timed":
                seen.setdefault(f"bash -c :, {name} [us]", []).append(shell_us(way))
    summaries = {what: Summary.of(all) for what, all in sorted(seen.items())}
    rows = [[what, str(one)] for what, one in summaries.items()]
    figures = [
        Figure(
            f"tracing: a call of a {call}",
            "ns",
            summaries[f"{call}, as it is [ns]"],
            limit_name="untraced",
            limit=summaries[f"{call}, direct [ns]"].median,
        )
        for call in ("launch", "copy", "gemm", "collective")
    ]
    harness.report(
        "tracing",
        f"A call with and without the tracing library: median (p10 – p90) of {rounds}",
        ["", ""],
        rows,
        dict(summaries),
        ["limit: a call that does nothing; goal for a process without CUDA: 200 us more."],
        figures,
    )


if __name__ == "__main__":
    main()
