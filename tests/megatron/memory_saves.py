"""Training whose steps are all in memory, and what Megatron alone makes of what was written of them.

    memory_saves.py train PLACE FORMAT TENSOR_PARALLEL DISTRIBUTED STEPS [COPIES]
    memory_saves.py theirs|undisturbed PLACE FORMAT TENSOR_PARALLEL DISTRIBUTED STEPS

"train": each life takes STEPS steps, says what it has, and waits until it is killed, or there is a file PLACE/end. "theirs": Megatron
loads, and takes STEPS steps more; "undisturbed": it takes STEPS steps from the first. Both without Troupe.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

import torch
from tiny_gpt import Training
from training import write


def train(training: Training, place: Path, steps: int, copies: int) -> None:
    from troupe.checkpoint.megatron import StorageType, load_checkpoint, save_checkpoint, wait_latest_copies

    told: list[str] = []
    logger = logging.getLogger("troupe.checkpoint")
    logger.setLevel(logging.INFO)
    logger.addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
    life, rank = int(os.environ["TROUPE_GENERATION"]) % 4096, torch.distributed.get_rank()
    training.step, flops = load_checkpoint(*training.everything, replica_count=copies)
    begun, until = training.step, training.step + steps
    assert flops == 10 * begun
    while training.step < until:
        training.train(training.step + 1)
        step = training.step
        assert save_checkpoint(step, *training.everything, 10 * step, storage_type=StorageType.MEMORY, replica_count=copies), told
    if copies:
        assert wait_latest_copies(60) == until, told
    write(place / f"saved-{life}-{rank}.json", {"begun": begun, "step": until, "digest": training.digest(), "told": told})
    while not (place / "end").exists():
        time.sleep(0.02)


def by_megatron(training: Training, what: str, place: Path, steps: int) -> None:
    from megatron.training import checkpointing

    found = checkpointing.load_checkpoint(*training.everything) if what == "theirs" else (0, 0)
    training.step = found[0]
    before = training.digest()
    training.train(training.step + steps)
    said = {"found": list(found), "before": before, "after": training.digest()}
    assert "troupe.checkpoint" not in sys.modules
    write(place / f"{what}-{torch.distributed.get_rank()}.json", said)


def main(what: str, place: Path, fmt: str, tensor_parallel: int, distributed: bool, steps: int, copies: int = 0) -> None:
    torch.distributed.init_process_group("gloo")
    training = Training(str(place / "checkpoints"), tensor_parallel, distributed, ckpt_format=fmt)
    if what == "train":
        train(training, place, steps, copies)
    else:
        by_megatron(training, what, place, steps)
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[6:]]
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5] == "true", *numbers)
