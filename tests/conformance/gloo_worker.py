"""One rank: collectives of several groups over the store it finds in the environment."""

import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

total = torch.tensor([rank + 1.0])
dist.all_reduce(total)

gathered: list[object] = [None] * world
dist.all_gather_object(gathered, {"rank": rank, "padding": "x" * 10_000})

pairs = [dist.new_group([r, (r + 1) % world]) for r in range(world)]
mine = torch.tensor([rank])
for group in pairs:
    if dist.get_rank(group) >= 0:
        dist.barrier(group)
dist.all_reduce(mine)
dist.monitored_barrier()

print(total.item(), [g["rank"] for g in gathered], mine.item())
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # the interpreter's own end may abort: see leave() in tests/torchrun/training/ddp.py
