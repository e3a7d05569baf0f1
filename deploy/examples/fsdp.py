#!/usr/bin/env python3
"""Fully sharded training (FSDP2) that goes on where it was after a worker, a node or the whole job was lost.

    actor-launcher --nproc-per-node 2 --max-restarts 3 fsdp.py CHECKPOINTS [STEPS]

Each rank saves its own part of parameters and optimizer, in PyTorch's own format. The job may go on with another number of
ranks.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from troupe.checkpoint import KeepLatestStep, StorageType
from troupe.checkpoint.fsdp import FsdpShardCheckpointer


def batch(step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of a step's data; a loader that can begin at any step does the same."""
    random = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    x = torch.randn(16, 32, generator=random)
    return x.to(device), x.sum(dim=1, keepdim=True).to(device)


def sharded_model(device: torch.device) -> torch.nn.Module:
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(2)]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(32, 1)).to(device)
    mesh = dist.init_device_mesh(device.type, (dist.get_world_size(),))
    for part in [*blocks, model]:
        fully_shard(part, mesh=mesh)
    return model


def main(checkpoints: str, steps: int) -> None:
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    model = sharded_model(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with FsdpShardCheckpointer(
        checkpoints, deletion_strategy=KeepLatestStep(3, checkpoints)
    ) as checkpointer:
        saved = checkpointer.load_checkpoint(model, optimizer)  # {} in a new job
        first = saved.get("step", 0) + 1
        if dist.get_rank() == 0:
            print(f"begins with step {first}", flush=True)
        for step in range(first, steps + 1):
            x, y = batch(step, device)
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # Memory each step, which costs a copy; the disk each 50th, behind training.
            where = StorageType.DISK if step % 50 == 0 else StorageType.MEMORY
            checkpointer.save_checkpoint(step, model, optimizer, {"step": step}, storage_type=where)
        checkpointer.wait_latest_checkpoint()
    if dist.get_rank() == 0:
        made = f"ends after step {steps} with loss {loss.item():.9f}" if first <= steps else f"step {first - 1} is made already"
        print(made, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
