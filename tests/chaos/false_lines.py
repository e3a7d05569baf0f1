#!/usr/bin/env python3
"""Is a job that trains ever said to hang? Short jobs, many at once, so that each waits for a processor most of its time.

Each makes a few steps of one kind and ends in one way, by chance. No line may name a rank, and each job must end well.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import harness
from harness import Summary
from launchers import Launcher, Run, until

TRAINS = """import atexit, gc, hashlib, random, sys, threading, time, torch, torch.distributed as dist
torch.set_num_threads(1)
steps, program, end = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
if program == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def hash_for(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.sha256(bytes(1 << 20)).digest()

for step in range(steps):
    if program == "all_reduce":
        dist.all_reduce(torch.ones(64))
    elif program == "inference":
        with torch.no_grad():
            found = model(torch.randn(16, 64))
        dist.all_gather([torch.empty_like(found) for _ in range(dist.get_world_size())], found)
    else:
        optimizer.zero_grad()
        model(torch.randn(16, 64)).sum().backward()
        if program == "by_hand":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        optimizer.step()
    time.sleep(random.uniform(0, 0.02))

if end == "first evaluates" and rank == 0:
    hash_for(3)
dist.barrier()
if end == "destroys":
    dist.destroy_process_group()
elif end == "exit handler":
    atexit.register(hash_for, 2 if rank else 0)
elif end == "thread":
    threading.Thread(target=time.sleep, args=(2 + rank,)).start()
elif end == "much to free":
    kept = [[] for _ in range(2_000_000)]
    for one in kept:
        one.append(kept)
    del kept, one
    gc.collect()
"""
PROGRAMS = ("ddp", "by_hand", "all_reduce", "inference")
ENDS = ("plain", "destroys", "exit handler", "thread", "much to free", "first evaluates")
VERDICTS = {"hang", "hang_unexplained", "hang_ended", "rank_slow"}
WITHIN = 600.0  # seconds of a job, beside the others


@dataclass
class Job:
    kind: str
    run: Run
    directory: tempfile.TemporaryDirectory
    begun: float

    def log(self) -> list[str]:
        return Path(self.directory.name, "log.json").read_text().splitlines()

    def verdicts(self) -> list[str]:
        told = [json.loads(line) for line in self.log()]
        return [one["text"] for one in told if one["event"] in VERDICTS]


def begin(launcher: Launcher, chance: random.Random, programs: list[str], ends: list[str]) -> Job:
    directory = tempfile.TemporaryDirectory()
    script = Path(directory.name, "train.py")
    script.write_text(TRAINS)
    program, end, steps = chance.choice(programs), chance.choice(ends), chance.randint(1, 120)
    run = Run(
        launcher, [str(script), str(steps), program, end], Path(directory.name), procs=2,
        options=[f"--json-log={directory.name}/log.json"],
    )  # fmt: skip
    return Job(f"{steps} steps, {program}, {end}", run.__enter__(), directory, time.monotonic())


def ended(jobs: list[Job]) -> Job:
    def first() -> Job | None:
        return next((job for job in jobs if job.run.launchers[0].poll() is not None), None)

    return until(first, WITHIN, "the end of a job: " + ", ".join(job.kind for job in jobs))


def play(launcher: Launcher, chosen: argparse.Namespace) -> tuple[dict[str, list[float]], list[str]]:
    """Seconds of each job, by its end, and the lines that were said of ranks."""
    rounds, beside = chosen.rounds, chosen.beside
    chance, took, lines = random.Random(chosen.seed), defaultdict(list), []
    running: list[Job] = []
    try:
        for turn in range(rounds):
            while len(running) < min(beside, rounds - turn):
                running.append(begin(launcher, chance, chosen.program, chosen.end))
            job = ended(running)
            running.remove(job)
            took[job.kind.rpartition(", ")[2]].append(time.monotonic() - job.begun)
            assert job.run.wait(0) == [0], f"{job.kind}\n{job.run.err()}"
            told = [f"{job.kind}: {text}" for text in job.verdicts()]
            lines += told
            harness.progress(f"{turn + 1} of {rounds}: {job.kind}; false lines so far: {len(lines)}")
            for one in told:
                harness.progress("\n".join([one, *job.log()]))
            job.run.__exit__()
            job.directory.cleanup()
    finally:
        for job in running:
            job.run.__exit__()
            job.directory.cleanup()
    return took, lines


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beside", type=int, default=10, help="jobs at once; default 10")
    parser.add_argument("--program", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--end", nargs="+", choices=ENDS, default=ENDS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], 200, declare)
    ours = next(one for one in chosen.launchers if not one.is_torchrun)
    harness.progress(f"--seed {chosen.seed}")
    took, lines = play(ours, chosen)
    summaries = {end: Summary.of(seconds) for end, seconds in took.items()}
    harness.report(
        "false_lines",
        f"{chosen.rounds} short jobs of two ranks, {chosen.beside} at once: lines that name a rank {len(lines)}",
        ["how it ends", "jobs", "seconds of a job: median (p10 – p90)"],
        [[end, str(len(took[end])), str(how)] for end, how in summaries.items()],
        {end: vars(how) for end, how in summaries.items()} | {"lines": lines},
    )
    if lines:
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main()
