"""One rank of a small model: some steps, a state, and which samples each step had. Its world may be another one each time.

    training.py FOLDER NAME STEPS [RESUMED] trains STEPS micro-batches and writes FOLDER/NAME.pt, FOLDER/NAME.rank_N
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler, ElasticTrainer

SAMPLES, BATCH, FULL_WORLD = 96, 2, 4


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        return index, torch.randn(8, generator=torch.Generator().manual_seed(index))


def main(folder: Path, name: str, steps: int, resumed: str = "") -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler = ElasticDistributedSampler(Numbers())
    loader = ElasticDataLoader(
        Numbers(), batch_size=BATCH, sampler=sampler, num_workers=1, config_file=folder / f"settings_{rank}"
    )
    if resumed:
        state = torch.load(folder / f"{resumed}.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])
    trainer = ElasticTrainer(model, loader, micro_batches=FULL_WORLD)
    prepared = trainer.prepare(optimizer)
    seen: list[list[int]] = []
    for indices, x in loader:
        with trainer.step(fix_total_batch_size=True):
            prepared.zero_grad()
            model(x).square().mean().backward()
            prepared.step()
        seen.append(indices.tolist())
        if len(seen) == steps:
            break
    (folder / f"{name}.rank_{rank}").write_text(json.dumps(seen))
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "sampler": sampler.state_dict()}, folder / f"{name}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
