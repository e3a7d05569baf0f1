#!/usr/bin/env python3
"""Are complete steps kept? Workers, node supervisors and whole launchers are killed at random moments while two ranks save every step to disk.

After each kill the newest complete step must be there, not older than the newest before, whole by its manifest, and hold what
was saved. Only ours; nothing is timed but how long it takes until a newer step is complete.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import harness
from harness import Summary
from launchers import ROOT, Launcher, Run, alive, children, until

TRAINS = """import os, sys, time, torch, torch.distributed as dist
from pathlib import Path
from troupe.checkpoint import DdpCheckpointer, KeepLatestStep
place, mib = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
checkpointer = DdpCheckpointer(place, 2, 2, deletion_strategy=KeepLatestStep(4, place))
state = checkpointer.load_checkpoint()
step, x = (state["step"], state["x"].clone()) if state else (0, torch.zeros(mib * 262144))
assert bool((x == step).all())
del state
while not Path(place, "enough").exists():
    step += 1
    x += 1
    checkpointer.save_checkpoint(step, {"step": step, "x": x})
    time.sleep(0.02)
os._exit(0)
"""
RESTS = 5.5  # seconds: a supervisor that lives shorter is taken for one in a crash loop
VICTIMS = ("worker", "node supervisor", "launcher and all")


def newest(place: Path) -> int:
    tracker = place / "dlrover_latest.txt"
    return int(tracker.read_text()) if tracker.exists() else 0


def check_newest(place: Path) -> int:
    """The newest complete step, its files compared with its manifest and with what was saved."""
    import torch

    for _ in range(20):
        step = newest(place)
        folder = place / str(step)
        try:
            manifest = json.loads((folder / "troupe-manifest.json").read_text())
            files = {one["name"]: one for one in manifest["shards"]}
            bytes_of = {name: (folder / name).read_bytes() for name in files}
            states = [torch.load(folder / name) for name in files]
        except FileNotFoundError:
            if newest(place) == step:
                raise
            continue  # four newer ones have come while it was read
        assert len(files) == 2 and manifest["step"] == step
        for name, content in bytes_of.items():
            said = files[name]
            assert (len(content), zlib.crc32(content)) == (said["bytes"], said["crc32"]), name
        assert all(state["step"] == step and bool((state["x"] == step).all()) for state in states)
        return step
    raise RuntimeError("the newest step was never read in time")


def job(launcher: Launcher, place: Path, directory: Path, mib: int) -> Run:
    script = directory / "train.py"
    script.write_text(TRAINS)
    return Run(
        launcher, [str(script), str(place), str(mib)], directory, 1, 2, 1000, True,
        environment={"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def strike(victim: str, run: Run, chance: random.Random) -> None:
    launcher = run.launchers[0].pid
    if victim == "worker":
        parts = ("troupe-node", "troupe-store", "troupe-reaper")
        workers = [pid for pid, name in children(launcher).items() if name not in parts]
        os.kill(chance.choice(workers), signal.SIGKILL)
    elif victim == "node supervisor":
        os.kill(run.supervisor(), signal.SIGKILL)
    else:
        os.kill(launcher, signal.SIGKILL)
        until(lambda: not run.leftovers(), 10, "the end of all")


def measure(launcher: Launcher, rounds: int, mib: int, seed: int) -> dict[str, list[float]]:
    chance, figures = random.Random(seed), defaultdict(list)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "build")))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run = stack.enter_context(job(launcher, place, directory, mib))
        before = 0
        for turn in range(rounds):
            until(lambda least=before: newest(place) > least + 2, 60, f"steps after {before}")
            time.sleep(chance.uniform(0, 0.3))
            victim, before = VICTIMS[turn % len(VICTIMS)], check_newest(place)
            strike(victim, run, chance)
            killed = time.monotonic()
            if not alive(run.launchers[0].pid) or run.launchers[0].poll() is not None:
                run = stack.enter_context(job(launcher, place, directory, mib))
            after = check_newest(place)
            assert after >= before, f"step {before} was complete, and now {after} is the newest"
            until(lambda least=after: newest(place) > least, 60, f"a step after {after}: {run.err()}")
            figures[victim].append((time.monotonic() - killed) * 1e3)
            harness.progress(f"{turn + 1} of {rounds}: {victim}, step {before} → {newest(place)}")
            if victim == "node supervisor":
                time.sleep(max(0.0, killed + RESTS - time.monotonic()))
        (place / "enough").touch()
        assert run.wait(60) == [0], run.err()
        check_newest(place)
    return figures


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=16, help="of each rank's state; default 16")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], 60, declare)
    ours = next(one for one in chosen.launchers if not one.is_torchrun)
    harness.progress(f"--seed {chosen.seed}")
    figures = measure(ours, chosen.rounds, chosen.mib, chosen.seed)
    summaries = {victim: Summary.of(times) for victim, times in figures.items()}
    harness.report(
        "kept",
        f"{chosen.rounds} kills while every step is saved to disk: complete steps lost 0, partial ones taken for complete 0",
        ["killed", "times", "until a newer step is complete, ms: median (p10 – p90)"],
        [[victim, str(len(figures[victim])), str(how)] for victim, how in summaries.items()],
        {victim: vars(how) for victim, how in summaries.items()},
        [f"{chosen.mib} MiB for each of two ranks, both shards of every step."],
    )


if __name__ == "__main__":
    main()
