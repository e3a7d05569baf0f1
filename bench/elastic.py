#!/usr/bin/env python3
"""A job of one or two nodes: a lone start, a node that joins, a node that is killed."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from harness import Summary, ratio
from launchers import Launcher, Run, free_port

# Its first act is to say which world it is in.
WORKER = """#!/bin/sh
echo "$RANK/$WORLD_SIZE" >> "$1/worlds"
exec sleep 1000
"""
CASES = {
    "lone start: launch → its worker's first act": "lone",
    "join: launch → last first act in the larger world": "join",
    "loss: kill -9 of its launcher → the survivor's next first act": "loss",
}
WITHIN = {True: 180.0, False: 30.0}  # torchrun waits for a last call of 30 s each time


def milliseconds_until(run: Run, directory: Path, lines: list[str], within: float) -> float:
    """Until the worlds said are these; the file is looked at every millisecond."""
    began = time.monotonic()
    said = directory / "worlds"
    while not said.exists() or sorted(said.read_text().split()) != sorted(lines):
        if time.monotonic() - began > within:
            raise TimeoutError(f"not {lines}\n{run.err()}")
        time.sleep(0.001)
    return (time.monotonic() - began) * 1e3


def one_life(launcher: Launcher) -> dict[str, float]:
    within = WITHIN[launcher.is_torchrun]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        worker = directory / "worker.sh"
        worker.write_text(WORKER)
        worker.chmod(0o755)
        job = Run(
            launcher,
            [str(worker), name],
            directory,
            python=False,
            options=["--nnodes=1:2"],
            port=free_port(),
            ranked=False,
        )
        times = {}
        with job as run:
            times["lone"] = milliseconds_until(run, directory, ["0/1"], within)
            time.sleep(0.5)
            (directory / "worlds").unlink()
            run.start_node(1)
            times["join"] = milliseconds_until(run, directory, ["0/2", "1/2"], within)
            time.sleep(0.5)
            (directory / "worlds").unlink()
            run.launchers[1].kill()
            times["loss"] = milliseconds_until(run, directory, ["0/1"], within)
        return times


def main() -> None:
    chosen = harness.options(__doc__, rounds=10)
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(chosen.rounds):
        for launcher in chosen.launchers:
            if launcher.is_torchrun and number > 0:
                continue  # a life of its takes minutes
            harness.progress(f"{launcher.name}, life {number + 1}")
            for case, value in one_life(launcher).items():
                samples[case][launcher.name].append(value)

    ours, peer = harness.peer_of(chosen.launchers)
    rows, data = [], {}
    for title, case in CASES.items():
        summaries = {name: Summary.of(values) for name, values in samples[case].items()}
        shown = [str(summaries[one.name]) for one in chosen.launchers]
        rows.append([title, *shown, ratio(summaries.get(ours), summaries.get(peer))])
        data[case] = {name: vars(summary) for name, summary in summaries.items()}
    harness.report(
        "elastic",
        f"--nnodes=1:2, ms: median (p10 – p90) of {chosen.rounds}; torchrun once",
        ["", *(one.name for one in chosen.launchers), "torchrun : ours"],
        rows,
        data,
        ["Goals: 1,000 ms, 500 ms, 1,000 ms."],
    )


if __name__ == "__main__":
    main()
