"""The training of storage.py as a pure function: what each rank's state is after each step.

Any two steps, and any two ranks, differ in every page. So a state that is of two steps in part, or of another
rank, has another sum.
"""

from __future__ import annotations

import bisect
import ctypes
import hashlib
from typing import Any

import torch

WEIGHTS = 4096  # the same at all ranks
FACTOR = 1664525  # odd, so that nothing of a shard is ever forgotten


def begun(rank: int, words: int) -> dict[str, Any]:
    """Before the first step. `words`: of this rank's own shard, of 4 bytes each."""
    chance = torch.Generator().manual_seed(rank)
    shard = torch.randint(-(2**31), 2**31, (words,), dtype=torch.int32, generator=chance)
    return {"step": 0, "rank": rank, "weights": torch.zeros(WEIGHTS), "shard": shard}


def push(rank: int, step: int) -> torch.Tensor:
    """A rank's part of a step. Sums of such parts are exact, and so the same in every order."""
    chance = torch.Generator().manual_seed(step * 1_000_003 + rank)
    return torch.randint(-8, 9, (WEIGHTS,), generator=chance).float() / 16


def summand(rank: int, step: int) -> int:
    return (step * 69069 + rank * 362437 + 1013904223) % 2**31


def advance(state: dict[str, Any], pushed: torch.Tensor) -> None:
    """One step, by the sum of what all ranks push, in the memory where the state is."""
    state["step"] += 1
    state["weights"].mul_(0.999).sub_(pushed * 0.01)
    state["shard"].mul_(FACTOR).add_(summand(state["rank"], state["step"]))


def digest(state: dict[str, Any]) -> str:
    made = hashlib.blake2b(f"{state['step']} {state['rank']}".encode(), digest_size=16)
    for name in ("weights", "shard"):
        tensor = state[name].contiguous()
        size = tensor.numel() * tensor.element_size()
        made.update((ctypes.c_char * size).from_address(tensor.data_ptr()))
    return made.hexdigest()


class Reference:
    """The undisturbed run of so many ranks."""

    EVERY = 200  # steps, of which the weights are remembered

    def __init__(self, world: int, words: int) -> None:
        self.world = world
        self.first = [begun(rank, words)["shard"].to(torch.int64) for rank in range(world)]
        self.weights: list[tuple[int, torch.Tensor]] = [(0, torch.zeros(WEIGHTS))]
        self.affine: list[tuple[int, list[int]]] = [(1, [0] * world)]  # of each step: shard = a * first + b

    def digest(self, rank: int, step: int) -> str:
        factor, summands = self._affine(step)
        shard = (self.first[rank] * factor + summands[rank]).to(torch.int32)
        weights = self._weights(step)
        return digest({"step": step, "rank": rank, "weights": weights, "shard": shard})

    def _weights(self, step: int) -> torch.Tensor:
        at, weights = self.weights[bisect.bisect_right(self.weights, step, key=lambda e: e[0]) - 1]
        weights = weights.clone()
        state = {"step": at, "rank": 0, "weights": weights, "shard": torch.zeros(1, dtype=torch.int32)}
        while state["step"] < step:
            number = state["step"] + 1
            advance(state, sum(push(rank, number) for rank in range(self.world)))
            if number == self.weights[-1][0] + self.EVERY:
                self.weights.append((number, weights.clone()))
        return weights

    def _affine(self, step: int) -> tuple[int, list[int]]:
        while len(self.affine) <= step:
            number, (factor, summands) = len(self.affine), self.affine[-1]
            summands = [(b * FACTOR + summand(rank, number)) % 2**32 for rank, b in enumerate(summands)]
            self.affine.append((factor * FACTOR % 2**32, summands))
        return self.affine[step]
