#!/usr/bin/env python3
"""How fast --tee brings a worker's output to the console: a pipe that is read, and a file.

The worker stamps its first write; the clock stops at the console's last byte. So starting up does
not count, and writing the log does. The log and the file lie in memory (/dev/shm), as the disk is
not what is measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import PYTHON, Launcher, base_environment

LINES = 2_000_000
LINE = "step 000000 loss 0.000000 | some words as training scripts print them, 100 bytes altogether ......\n"
BYTES = LINES * len(LINE)
WORKER = f"""
import os, sys, time
block = {LINE!r}.encode() * 2_000
open(sys.argv[1], "w").write(str(time.time_ns()))
for _ in range({LINES // 2_000}):
    os.write(1, block)
"""


def read_to_end(pipe: int) -> tuple[int, int]:
    """How many bytes came, and when the last did."""
    total, last, into = 0, 0, bytearray(1 << 20)
    while got := os.readv(pipe, [into]):
        total, last = total + got, time.time_ns()
    return total, last


def to_pipe(command: list[str], began) -> float:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=base_environment(),
    ) as running:
        total, last = read_to_end(running.stdout.fileno())
    if running.returncode != 0 or total < BYTES:
        raise RuntimeError(f"{command[0]} ended with {running.returncode} after {total} bytes")
    return BYTES / 1e6 / ((last - began()) / 1e9)


def to_file(command: list[str], began, place: Path) -> float:
    with open(place / "console", "wb") as console:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.DEVNULL,
            env=base_environment(),
            check=True,
        )
    written = os.stat(place / "console")
    if written.st_size < BYTES:
        raise RuntimeError(f"{command[0]} showed {written.st_size} of {BYTES} bytes")
    return BYTES / 1e6 / ((written.st_mtime_ns - began()) / 1e9)


def launched(launcher: Launcher, place: Path) -> list[str]:
    logs = place / "logs"
    return launcher.command(
        [str(place / "worker.py"), str(place / "stamp")],
        options=[f"--log-dir={logs}", "--tee=1"],
    )


def one_round(launchers: list[Launcher], place: Path, rates) -> None:
    stamp = lambda: int((place / "stamp").read_text())  # noqa: E731
    plain = ["cat", str(place / "content")]
    now = time.time_ns()
    rates["cat file", "pipe"].append(to_pipe(plain, lambda: now))
    now = time.time_ns()
    rates["cat file", "file"].append(to_file(plain, lambda: now, place))
    for launcher in launchers:
        rates[launcher.name, "pipe"].append(to_pipe(launched(launcher, place), stamp))
        shutil.rmtree(place / "logs")
        rates[launcher.name, "file"].append(to_file(launched(launcher, place), stamp, place))
        shutil.rmtree(place / "logs")


def main() -> None:
    chosen = harness.options(__doc__, rounds=10)
    rates = defaultdict(list)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        place = Path(directory)
        (place / "worker.py").write_text(WORKER)
        (place / "content").write_text(LINE * LINES)
        for turn in range(chosen.rounds):
            harness.progress(f"round {turn + 1} of {chosen.rounds}")
            one_round(chosen.launchers, place, rates)

    summaries = {key: Summary.of(samples) for key, samples in rates.items()}
    ours, peer = harness.peer_of(chosen.launchers)
    names = ["cat file", *(launcher.name for launcher in chosen.launchers)]
    rows = [
        [name, *(str(summaries[name, to]) for to in ("pipe", "file"))]
        + [ratio(summaries[name, to], summaries.get((ours, to))) for to in ("pipe", "file")]
        for name in names
    ]
    figures = [
        Figure(
            f"--tee of one stream, to a {to}", "MB/s", summaries[ours, to], peer or "", summaries.get((peer, to)),
            "cat of a file in memory", summaries["cat file", to].median, more_is_better=True,
        )
        for to in ("pipe", "file") if ours
    ]  # fmt: skip
    harness.report(
        "tee",
        f"--tee: MB/s of one stream on the console, median (p10 – p90) of {chosen.rounds} in turn",
        ["", "to a pipe", "to a file", "ours: pipe", "ours: file"],
        rows,
        {f"{name} to {to}": summary for (name, to), summary in summaries.items()}
        | {"peer": peer, "bytes": BYTES},
        ["limit: cat of a file in memory, which neither writes a log nor looks for lines."],
        figures,
    )


if __name__ == "__main__":
    main()
