"""What a world of some size makes of a step that another has saved.

    worlds.py save|load|peer PLACE STAGE MEMORY TAG

"save" trains and saves step 5; "load" loads it with DeepSpeedCheckpointer; "peer" by DeepSpeed's own means alone, converter and all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import torch
from training import engine_of, train, write


def state_of(engine) -> dict[str, torch.Tensor]:
    """Every parameter and every state of the optimizer, whole, at rank 0."""
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

    whole = {}
    for name, parameter in engine.module.named_parameters():
        whole[name] = safe_get_full_fp32_param(parameter)
        for key in ("exp_avg", "exp_avg_sq"):
            whole[f"{name}.{key}"] = safe_get_full_optimizer_state(parameter, key)
    return {name: tensor.clone() for name, tensor in whole.items() if tensor is not None}


def convert(source: Path, output: Path) -> None:
    from deepspeed.checkpoint import ds_to_universal

    ds_to_universal.main(
        argparse.Namespace(
            input_folder=str(source), output_folder=str(output), num_extract_workers=1, num_merge_workers=1,
            keep_temp_folder=False, strict=True, inject_missing_state=True,
        )
    )  # fmt: skip


def main(what: str, place: Path, stage: int, memory: bool, tag: str) -> None:
    from troupe.checkpoint import StorageType
    from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

    engine, rank, ckpt = engine_of(stage, ""), int(os.environ["RANK"]), place / "checkpoints"
    if what == "peer":
        if rank == 0:
            convert(ckpt / tag, place / "peer" / tag)
        torch.distributed.barrier()
        engine._config.load_universal_checkpoint = True
        path, client = engine.load_checkpoint(str(place / "peer"), tag)
    else:
        checkpointer = DeepSpeedCheckpointer(engine, ckpt)
        if what == "save":
            for step in range(1, 6):
                train(engine, step)
            where = StorageType.MEMORY if memory else StorageType.DISK
            assert checkpointer.save_checkpoint(ckpt, tag, client_state={"mine": 5}, storage_type=where)
            assert checkpointer.wait_latest_checkpoint(60)
            path, client = None, {"mine": 5}
        else:
            path, client = checkpointer.load_checkpoint(ckpt)
    state = state_of(engine)
    train(engine, 6)
    after = state_of(engine)
    if rank == 0:
        torch.save({"state": state, "after": after, "steps": engine.global_steps, "lr": engine.get_lr()}, place / f"{what}.pt")
        write(place / f"{what}.json", {"path": path, "mine": client["mine"], "left": sorted(os.listdir(ckpt))})
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]), sys.argv[5])
