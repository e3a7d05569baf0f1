"""Counts steps in place of training, and gets into the trouble it is told to: crash, crash-once, memory."""

import os
import sys
import time
from pathlib import Path

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
steps, trouble = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
saved, part = Path("saved"), Path("part")
hoarded = []


def loss_of(step: int) -> float:
    if rank == world - 1 and step >= 4:
        if trouble == "crash" or (trouble == "crash-once" and restarts == 0):
            raise ValueError(f"the loss of step {step} is nan")
        while trouble == "memory":
            hoarded.append(bytearray(b"x" * (1 << 22)))
    return 1 / step


for step in range(int(saved.read_text()) + 1 if saved.exists() else 1, steps + 1):
    time.sleep(0.2)
    loss = loss_of(step)
    if rank == 0:
        print(f"step {step} of {steps}, loss {loss:.3f}", flush=True)
        part.write_text(str(step))
        part.replace(saved)
