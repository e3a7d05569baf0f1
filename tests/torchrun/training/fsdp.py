"""Fully sharded training: `fully_shard` over a device mesh, the state gathered with torch's own tools.

fsdp.py FILE: rank 0 writes the last loss and the digest of the full weights there.
"""

import os
import sys

import torch
import torch.distributed as dist
from ddp import digest, leave
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main(report: str) -> None:
    dist.init_process_group(backend="gloo")
    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    torch.manual_seed(0)
    layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(3)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(32, 1))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())
    for _ in range(5):
        loss = model(torch.rand(8, 32)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if dist.get_rank() == 0:
        with open(report, "w") as file:
            print(loss.item(), digest(state), file=file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
    leave()
