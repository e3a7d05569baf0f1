#!/usr/bin/env python3
"""Data and global batch that go on where they were when the world has changed its size: no sample of an epoch is left out or
seen twice, and each step of the optimizer has as many samples as four ranks have, in a world of one, two or four.

    actor-launcher --nnodes 1:2 --nproc-per-node 2 --rdzv-endpoint HOST:PORT elastic.py CHECKPOINTS [STEPS]
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from troupe.checkpoint import DdpCheckpointer, KeepLatestStep, StorageType
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler, ElasticTrainer

FULL_WORLD = 4  # ranks
BATCH = 8  # samples of a rank at a time; a step of the optimizer has 32


def main(checkpoints: str, steps: int) -> None:
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    dist.init_process_group("nccl" if on_gpu else "gloo")
    torch.manual_seed(0)
    inputs = torch.randn(2048, 32)
    targets = inputs.square().sum(dim=1, keepdim=True)
    data = TensorDataset(inputs, targets)
    layers = torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    sampler = ElasticDistributedSampler(data)
    loader = ElasticDataLoader(data, batch_size=BATCH, sampler=sampler)
    trainer = ElasticTrainer(model, loader, micro_batches=FULL_WORLD)
    kept = KeepLatestStep(3, checkpoints)
    with DdpCheckpointer(checkpoints, deletion_strategy=kept) as checkpointer:
        state = checkpointer.load_checkpoint()
        if state:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            sampler.load_state_dict(state["sampler"])
        step = state.get("step", 0)
        prepared = trainer.prepare(optimizer)
        if dist.get_rank() == 0:
            print(
                f"begins with step {step + 1}, in epoch {sampler.epoch} behind {sampler.state_dict()['completed_num']} samples; "
                f"each of {dist.get_world_size()} ranks accumulates {trainer.gradient_accumulation_steps}",
                flush=True,
            )
        while step < steps:
            for x, y in loader:
                with trainer.step(fix_total_batch_size=True):
                    prepared.zero_grad()
                    torch.nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
                    prepared.step()
                    if trainer.sync_gradients:  # a state between two steps has no gradients to lose
                        step += 1
                        state = {"step": step, "sampler": sampler.state_dict()}
                        state["model"] = model.state_dict()
                        state["optimizer"] = optimizer.state_dict()
                        where = StorageType.DISK if step % 50 == 0 else StorageType.MEMORY
                        checkpointer.save_checkpoint(step, state, storage_type=where)
                if step == steps:
                    break
            else:
                sampler.set_epoch(sampler.epoch + 1)
        checkpointer.wait_latest_checkpoint()
    if dist.get_rank() == 0:
        with torch.no_grad():
            loss = torch.nn.functional.mse_loss(model.module(inputs.to(device)), targets.to(device))
        print(f"ends after step {steps} with loss {loss.item():.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
