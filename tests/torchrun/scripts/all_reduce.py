"""all_reduce.py INIT_METHOD: sums the ranks of a gloo group that is found by INIT_METHOD."""

import os
import sys

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=world)
total = torch.tensor(rank)
dist.all_reduce(total)
assert total.item() == world * (world - 1) // 2
dist.destroy_process_group()
os._exit(0)  # the interpreter's own end may abort: see leave() in ../training/ddp.py
