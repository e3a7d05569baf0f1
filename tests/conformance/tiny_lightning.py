"""A module of Lightning that is as small as one can be."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset


class Tiny(lightning.LightningModule):
    def __init__(self, width: int = 8):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 1))
        self.seen: list[tuple[int, int, float]] = []

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = self.layers(batch[0]).square().mean()
        self.seen.append((self.global_step, self.current_epoch, float(loss.detach())))
        return loss

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def samples() -> DataLoader:
    """Enough of them for a dozen steps of two ranks."""
    generator = torch.Generator().manual_seed(0)
    return DataLoader(TensorDataset(torch.randn(128, 4, generator=generator)), 4)


class Sharded(Tiny):
    """For ModelParallelStrategy: of each layer every rank has a part, and of the last one rank 0 alone."""

    def configure_model(self) -> None:
        mesh = self.device_mesh["data_parallel"]
        for layer in self.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.layers, mesh=mesh)
