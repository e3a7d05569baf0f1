"""Tiny models, sharded in each way that PyTorch knows, and what they are trained on."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

WIDTH, OUT = 13, 7  # no multiple of any world size; FSDP1 needs a row for each rank
KINDS = ["fsdp1", "fsdp2", "hsdp", "tp", "fsdp2 of tp"]
State = dict[str, Any]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return x + self.down(torch.relu(self.up(x)))


class Trained:
    def __init__(self, kind: str, seed: int = 0):
        torch.manual_seed(seed)
        self.kind, world = kind, dist.get_world_size()
        blocks = [Block() for _ in range(2)]
        model: torch.nn.Module = torch.nn.Sequential(*blocks, torch.nn.Linear(WIDTH, OUT))
        if "tp" in kind:
            shape = (2, world // 2) if kind == "fsdp2 of tp" else (1, world)
            mesh = init_device_mesh("cpu", shape, mesh_dim_names=("shard", "tp"))
            for block in blocks:
                plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
                parallelize_module(block, mesh["tp"], plan)
        if kind.startswith("fsdp2") or kind == "hsdp":
            if kind == "fsdp2":
                mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("shard",))
            if kind == "hsdp":
                mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("copies", "shard"))
            names = ("copies", "shard") if kind == "hsdp" else ("shard",)
            for part in [*blocks, model]:
                fully_shard(part, mesh=mesh[names])
        if kind == "fsdp1":
            model = FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)

    def step(self, number: int) -> None:
        random = torch.Generator().manual_seed(number)
        x = torch.randn(8, WIDTH, generator=random)
        loss = torch.nn.functional.mse_loss(self.model(x), x[:, :OUT].cumsum(dim=1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def state(self, step: int) -> State:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": step, "note": {"lr": [0.1, step]}}

    def take(self, state: State) -> int:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        return state["step"]


def leaves(state: Any, path: str = "") -> dict[str, Any]:
    """Tensors as this rank has them, and all else, by their paths."""
    if isinstance(state, dict):
        found: dict[str, Any] = {}
        for key, value in state.items():
            found |= leaves(value, f"{path}/{key}")
        return found
    if isinstance(state, (list, tuple)):
        return leaves(dict(enumerate(state)), path)
    if isinstance(state, DTensor):
        return {path: state.to_local()}
    if hasattr(state, "local_shards"):
        return {f"{path}[{i}]": shard.tensor for i, shard in enumerate(state.local_shards())}
    return {path: state}


def blank(state: Any) -> Any:
    """The same structure with other content."""
    if isinstance(state, dict):
        return {key: blank(value) for key, value in state.items()}
    if isinstance(state, list):
        return [blank(value) for value in state]
    if hasattr(state, "local_shards") and not isinstance(state, DTensor):
        for shard in state.local_shards():
            shard.tensor.fill_(-1)
        return state
    if isinstance(state, torch.Tensor):
        return torch.full_like(state, -1) if state.numel() else state.clone()
    return type(state)()


def same(one: State, other: State) -> bool:
    mine, theirs = leaves(one), leaves(other)
    assert mine.keys() == theirs.keys(), mine.keys() ^ theirs.keys()
    for path, value in mine.items():
        equal = torch.equal(value, theirs[path]) if isinstance(value, torch.Tensor) else value == theirs[path]
        assert equal, f"{path}: {value} and {theirs[path]}"
    return True


def whole(state: Any) -> Any:
    """Plain numbers, the same in every world."""
    if isinstance(state, dict):
        return {key: whole(value) for key, value in state.items()}
    return state.full_tensor() if isinstance(state, DTensor) else state
