"""Workers of `swift sft` that are killed at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from launchers import Run, processes_tagged, until
from sft import SCRIPT, runs

WITHIN = 600.0  # a start of ms-swift takes minutes on a busy machine
COMMANDS = (SCRIPT.encode(), b"swift.cli.sft")  # as a file, or as a module


def ranks(run: Run) -> dict[int, int]:
    """The processes of workers, by rank."""
    found = {}
    for pid in processes_tagged(run.tag):
        try:
            variables = dict(row.split(b"=", 1) for row in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in row)
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"RANK" in variables and any(word in command for word in COMMANDS):
            found.setdefault(int(variables[b"RANK"]), pid)
    return found


def trains(output: Path, earlier: set[Path]) -> bool:
    return any((found / "logging.jsonl").exists() for found in set(runs(output)) - earlier)


def kill(run: Run, output: Path, life: int, world: int, chance: random.Random) -> str:
    """Kills a worker of the life that has just begun, mostly some time after its first step, and sometimes before. Which, and when."""
    earlier = set(runs(output))  # a life makes its directory some seconds after its start
    early = chance.random() < 0.2
    if early:
        until(lambda: len(ranks(run)) == world, WITHIN, f"life {life} starts")
        time.sleep(chance.uniform(0, 5))
    else:
        until(lambda: trains(output, earlier), WITHIN, f"life {life} trains")
        time.sleep(chance.uniform(0, 1.5))
    rank = chance.randrange(world)
    victim = until(lambda: ranks(run).get(rank), WITHIN, f"rank {rank} of life {life}")
    os.kill(victim, signal.SIGKILL)
    return f"rank {rank}, {'before' if early else 'after'} the first step"
