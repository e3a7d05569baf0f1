"""A tiny GPT that Megatron trains, and whose processes kill themselves at random moments.

    training.py PLACE FORMAT TENSOR_PARALLEL DISTRIBUTED STEPS KILLS

Every rank's part of a step is a function of rank and step, so that an undisturbed run ends with the same bits.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import torch
from tiny_gpt import Training

EVERY = 10  # steps, of which one goes to the disk
LONGEST = 0.8  # seconds of a life, from its first step


def killed_some_time(limit: float) -> None:
    def end() -> None:
        time.sleep(random.uniform(0, limit))
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end, daemon=True).start()


def write(path: Path, what: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(what))
    part.rename(path)


def main(place: Path, fmt: str, tensor_parallel: int, distributed: bool, steps: int, kills: int) -> None:
    from troupe.checkpoint.megatron import KeepLatestStep, StorageType, load_checkpoint, save_checkpoint, wait_latest_checkpoint

    told: list[str] = []
    logger = logging.getLogger("troupe.checkpoint")
    logger.setLevel(logging.INFO)
    logger.addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
    torch.distributed.init_process_group("gloo")
    life, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), torch.distributed.get_rank()
    checkpoints = str(place / "checkpoints")
    training = Training(checkpoints, tensor_parallel, distributed, ckpt_format=fmt)
    keep = {"deletion_strategy": KeepLatestStep(2, checkpoints)}
    training.step, flops = load_checkpoint(*training.everything, **keep)
    assert flops == 10 * training.step
    write(place / f"{life}-{rank}.json", {"resumed": training.step, "told": told})
    if life < kills and rank == random.Random(life).randrange(2):
        killed_some_time(LONGEST)
    while training.step < steps:
        training.train(training.step + 1)
        until, kept = time.monotonic() + 50, False
        while not kept:  # as soon as there is an image for it: the disk may be slow
            where = StorageType.DISK if training.step % EVERY == 0 else StorageType.MEMORY
            kept = save_checkpoint(training.step, *training.everything, 10 * training.step, storage_type=where, **keep)
            assert kept or ("being written out" in told[-1] and time.monotonic() < until), told
        while life < kills and training.step >= steps - 5:  # until it is killed
            time.sleep(0.02)
    assert wait_latest_checkpoint(60), told
    write(place / f"done-{rank}.json", {"digest": training.digest(), "told": told})
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "true", *(int(text) for text in sys.argv[5:7]))
