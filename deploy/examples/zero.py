#!/usr/bin/env python3
"""DeepSpeed that goes on where it was after a worker, a node or the whole job was lost.

    actor-launcher --nproc-per-node 2 --max-restarts 3 zero.py CHECKPOINTS [STEPS]

There is nothing of Troupe's in it but `checkpoint.troupe` in zero.json, which is DeepSpeed's own config. See docs/deepspeed.md.
"""

from __future__ import annotations

import os
import sys

import deepspeed
import torch


def batch(step: int, rank: int) -> torch.Tensor:
    """This rank's part of a step's data; a loader that can begin at any step does the same."""
    return torch.randn(16, 32, generator=torch.Generator().manual_seed(1000 * step + rank))


def main(checkpoints: str, steps: int) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
    config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zero.json")
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    engine.load_checkpoint(checkpoints)
    first = engine.global_steps + 1
    if engine.global_rank == 0:
        print(f"begins with step {first}", flush=True)
    for step in range(first, steps + 1):
        x = batch(step, engine.global_rank).to(engine.device)
        loss = torch.nn.functional.mse_loss(engine(x), x.sum(dim=1, keepdim=True))
        engine.backward(loss)
        engine.step()
        # Memory each step, which costs a copy; the disk each 50th, behind training: zero.json says so.
        engine.save_checkpoint(checkpoints)
    if engine.global_rank == 0:
        made = f"ends after step {steps} with loss {loss.item():.9f}" if first <= steps else f"step {first - 1} is made already"
        print(made, flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
