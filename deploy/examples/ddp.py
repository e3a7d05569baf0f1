#!/usr/bin/env python3
"""DistributedDataParallel that goes on where it was after a worker, a node or the whole job was lost.

    actor-launcher --nproc-per-node 2 --max-restarts 3 ddp.py CHECKPOINTS [STEPS]

Everything but the lines with `checkpointer` is what torchrun starts as well.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from troupe.checkpoint import DdpCheckpointer, KeepLatestStep, StorageType


def batch(step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of a step's data; a loader that can begin at any step does the same."""
    random = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    x = torch.randn(16, 32, generator=random)
    return x.to(device), x.sum(dim=1, keepdim=True).to(device)


def main(checkpoints: str, steps: int) -> None:
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    dist.init_process_group("nccl" if on_gpu else "gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(32, 1).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    with DdpCheckpointer(checkpoints, deletion_strategy=KeepLatestStep(3, checkpoints)) as checkpointer:
        state = checkpointer.load_checkpoint()
        if state:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        first = state.get("step", 0) + 1
        if dist.get_rank() == 0:
            print(f"begins with step {first}", flush=True)
        for step in range(first, steps + 1):
            x, y = batch(step, device)
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            # Memory each step, which costs a copy; the disk each 50th, behind training.
            where = StorageType.DISK if step % 50 == 0 else StorageType.MEMORY
            checkpointer.save_checkpoint(step, state, storage_type=where)
        checkpointer.wait_latest_checkpoint()
    if dist.get_rank() == 0:
        made = f"ends after step {steps} with loss {loss.item():.9f}" if first <= steps else f"step {first - 1} is made already"
        print(made, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
