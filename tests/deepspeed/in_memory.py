"""A small model that DeepSpeed trains and whose steps are saved in memory alone, until it is killed.

    in_memory.py PLACE STAGE STEPS HOW

HOW: "config" (each step saved by the engine's own call, and then the script waits); "checkpointer" (with two replicas of each step; it
ends after the last one); "own" (DeepSpeed alone: it loads what `latest` names, if anything, and ends after the last step). Each rank
says in <rank>.jsonl what it holds after each step, and with what step it began.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import deepspeed
import torch
from training import Model, config_of, digest, train

NEVER = 10**9
PACE = 0.03  # seconds


def made_engine(stage: int, how: str) -> deepspeed.DeepSpeedEngine:
    config = config_of(stage, "")
    if how == "config":
        config["checkpoint"] = {"troupe": {"disk_interval": NEVER}}
    torch.manual_seed(0)
    model = Model()
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]


def main(place: Path, stage: int, steps: int, how: str) -> None:
    rank, ckpt = int(os.environ["RANK"]), str(place / "checkpoints")
    engine, checkpointer = made_engine(stage, how), None
    if how == "checkpointer":
        from troupe.checkpoint import StorageType
        from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

        checkpointer = DeepSpeedCheckpointer(engine, ckpt, replica_count=2)
    path, _ = (checkpointer or engine).load_checkpoint(ckpt)
    with open(place / f"{how}-{rank}.jsonl", "a", buffering=1) as notes:

        def note(**what: object) -> None:
            notes.write(json.dumps({"step": engine.global_steps, "digest": digest(engine)} | what) + "\n")

        note(begun=path or "")
        for step in range(engine.global_steps + 1, steps + 1):
            train(engine, step)
            if how == "config":
                assert engine.save_checkpoint(ckpt)
            elif checkpointer:
                assert checkpointer.save_checkpoint(ckpt, storage_type=StorageType.MEMORY)
                checkpointer.wait_latest_copies(60)
            note()
            time.sleep(0 if how == "own" else PACE)
        while how == "config":
            time.sleep(PACE)
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
