"""Two ranks accumulate windows of two, with DDP and with each FSDP: the same weights as DDP's, or a refusal."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel
from troupe.elastic import ElasticTrainer

ON_CPU = {"device_id": torch.device("cpu")}
WRAPPERS: dict[str, Callable[[torch.nn.Module], torch.nn.Module]] = {
    "DDP": DistributedDataParallel,
    "FSDP": lambda model: FullyShardedDataParallel(model, **ON_CPU),
    "use_orig_params": lambda model: FullyShardedDataParallel(model, use_orig_params=True, **ON_CPU),
    "FSDP2": fully_shard,
}


def trained(wrapped: Callable[[torch.nn.Module], torch.nn.Module]) -> str:
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    model = wrapped(torch.nn.Sequential(*layers))
    trainer = ElasticTrainer(model, micro_batches=4)
    optimizer = trainer.prepare(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    random = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(8):
        x = torch.randn(4, 6, generator=random)
        try:
            with trainer.step(fix_total_batch_size=True):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        except RuntimeError as error:
            return str(error).split(",")[0]
    return f"{model(torch.ones(1, 6)).item():.5f}"


dist.init_process_group("gloo")
for name, wrapper in WRAPPERS.items():
    result = trained(wrapper)
    if dist.get_rank() == 0:
        print(f"{name}: {result}", flush=True)
dist.barrier()
dist.destroy_process_group()
