"""Whether a state has the structure of the one before: then its plan is the same, and is not made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.tensor import DTensor

from ..skeleton import without_collector
from .archives import PLAIN

def walked(state: Any) -> tuple[list[Any], list[Any]]:
    """All values of a state, containers before what they hold; and all that a plan depends on. A tensor of a kind that only
    PyTorch's planner knows is like no other, nor like itself the next time."""
    values: list[Any] = []
    shape: list[Any] = []
    with without_collector():
        _walk(state, values, shape)
    return values, shape


def _walk(value: Any, values: list[Any], shape: list[Any]) -> None:
    values.append(value)
    kind = type(value)
    shape.append(kind)
    if kind in PLAIN:
        shape += (value.shape, value.dtype, value.requires_grad)
    elif isinstance(value, torch.Tensor):
        shape += _of_tensor(value)
    elif isinstance(value, Mapping):
        shape.append(len(value))
        shape += value
        for each in value.values():
            _walk(each, values, shape)
    elif isinstance(value, (list, tuple)):
        shape.append(len(value))
        for each in value:
            _walk(each, values, shape)


def _of_tensor(value: torch.Tensor) -> tuple[Any, ...]:
    if isinstance(value, DTensor):
        return (value.shape, value.dtype, value.requires_grad, value.device_mesh, value.placements)
    if isinstance(value, ShardedTensor):
        shards = value.local_shards()
        if not any(isinstance(shard.tensor, ShardedTensor) for shard in shards):
            return (
                value.size(),
                *((*s.metadata.shard_offsets, *s.metadata.shard_sizes, s.tensor.dtype) for s in shards),
            )
    return (object(),)


def numbered(state: Any) -> dict[tuple[str | int, ...], int]:
    """At which place of `walked` each value is, by its path as PyTorch's planner names it."""
    found: dict[tuple[str | int, ...], int] = {}
    _number(state, (), found)
    return found


def _number(value: Any, path: tuple[str | int, ...], found: dict[tuple[str | int, ...], int]) -> None:
    found[path] = len(found)
    if isinstance(value, torch.Tensor):
        return
    if isinstance(value, Mapping):
        for key, each in value.items():
            _number(each, (*path, str(key)), found)
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _number(each, (*path, i), found)
