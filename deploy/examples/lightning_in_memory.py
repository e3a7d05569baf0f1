#!/usr/bin/env python3
"""Lightning with checkpoints in memory: a worker that was killed costs no step.

    actor-launcher --nproc-per-node 2 --max-restarts 3 lightning_in_memory.py CHECKPOINTS [STEPS]

The callback is all that checkpoints need. Each step is in memory, each 50th on the disk as Lightning writes it. The loader knows its
place in the epoch; with another one Lightning begins the epoch's data again.
"""

from __future__ import annotations

import os
import sys

import lightning
import torch
from torch.utils.data import TensorDataset

from troupe.checkpoint import KeepLatestStep
from troupe.checkpoint.lightning import FlashCheckpoint
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        self.loss: float | None = None

    def on_train_start(self) -> None:
        if self.global_rank == 0:
            print(f"begins with step {self.global_step + 1}", flush=True)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.loss = float(loss.detach())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def data() -> TensorDataset:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2048, 32, generator=random)
    return TensorDataset(inputs, inputs.sum(1, keepdim=True).tanh())


def main(checkpoints: str, steps: int) -> None:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    lightning.seed_everything(0, verbose=False)
    samples = data()
    sampler = ElasticDistributedSampler(samples, num_replicas=world, rank=rank)
    keep = KeepLatestStep(2, checkpoints)
    trainer = lightning.Trainer(
        max_steps=steps,
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        strategy="ddp" if world > 1 else "auto",
        callbacks=[FlashCheckpoint(checkpoints, memory_steps=1, disk_steps=50, deletion_strategy=keep)],
        use_distributed_sampler=False,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Regression()
    trainer.fit(model, ElasticDataLoader(samples, batch_size=16, sampler=sampler))
    if rank == 0:
        step = trainer.global_step
        print(f"step {step} is made already" if model.loss is None else f"ends after step {step} with loss {model.loss:.9f}", flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
