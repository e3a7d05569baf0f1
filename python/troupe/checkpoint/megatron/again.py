"""A save of torch_dist that has the structure of the one before: without Megatron's plan.

What goes wrong without this: in each save Megatron gathers what all ranks have, judges it, shares it out, plans it, gathers the plans and
tells everybody where everything lies. That takes four times as long as memory takes for half a GiB, and ends the same each time.

Contract: the files are those that Megatron's plan would give. `State` compares all that a plan depends on; what Megatron makes of it is
taken from the save before, of which each part is traced back to the tensor or object that it is of. What cannot be traced has no `Plan`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from ..contents import File, Part
from ..dcp.archives import PLAIN
from ..dcp.places import Places
from ..dcp.unchanged import written
from ..skeleton import without_collector
from ..tensor_facts import Facts, NotPlain

CONTENT = "content_metadata"  # what a state is called there, and an argument of dist_checkpointing.save


class NotKnown(Exception):
    """A state, or a save, of which nothing can be kept."""


class State:
    """What dist_checkpointing.save was given, taken apart as it does that. Raises NotKnown."""

    def __init__(self, serialization: ModuleType, state: dict[str, Any], content: Any):
        """`content`: the argument CONTENT."""
        if content is not None:
            state[CONTENT] = content
        sharded, self.common = serialization.save_preprocess(state, False)
        self.content = content
        self.objects: dict[str, list[Any]] = defaultdict(list)  # Megatron's ShardedObjects, by the names that they are saved under
        self.shape: list[Any] = []
        self._tensors: list[torch.Tensor] = []  # of its ShardedTensors
        with without_collector():
            self._walk(sharded)
            self.facts = self._facts()
        self.shape += [self.facts.compared, _same(self.facts)]

    def _walk(self, value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                self._walk(each)
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._walk(each)
        else:
            about = vars(value).copy()
            data = about.pop("data")
            self.shape.append((type(value), *about.values()))
            if hasattr(value, "unique_key"):
                self.objects[value.unique_key].append(value)
            elif isinstance(data, torch.Tensor):
                self._tensors.append(data)
            else:
                raise NotKnown(f"a {type(value).__name__} without a tensor")

    def _facts(self) -> Facts:
        with torch.no_grad():
            tensors = [one.detach() for one in self._tensors]
        if not PLAIN.issuperset(map(type, tensors)):
            raise NotKnown("tensors of other kinds than PyTorch's own")
        try:
            return Facts(tensors)
        except NotPlain as error:
            raise NotKnown from error


def _same(facts: Facts) -> list[int]:
    """Of each tensor, which was the first in the same storage: parts are traced back by where they are in memory."""
    first: dict[int, int] = {}
    return [first.setdefault(place, which) for which, place in enumerate(facts.places)]


@dataclass(frozen=True)
class _OfTensor:
    head: bytes
    storage: int | None  # of which tensor of the state; None: there are no bytes
    begin: int
    end: int


@dataclass(frozen=True)
class _OfObjects:
    key: str


class Plan:
    """What is known of a save when it is over. It holds no tensor."""

    def __init__(self, state: State, config: bytes, common: bool, files: Sequence[tuple[str, list[_OfTensor | _OfObjects]]], places: Places):
        """`config`: the file that says the format. `common`: this rank has written what all ranks have in common."""
        self.shape, self.content, self.config = state.shape, state.content, config
        self.common, self.places = common, places
        self._files = files

    @classmethod
    def of(
        cls, state: State, config: bytes, common: dict[str, Any] | None, files: Sequence[File], resolved: Sequence[Any], places: Places
    ) -> Plan:
        """`common`: that was written, if this rank has. `resolved`: what Megatron's planner had for each part of the files, in their
        order: a tensor of the state or a piece of one, or bytes. Raises NotKnown."""
        if common is not None and (common.keys() != state.common.keys() or common.get(CONTENT) != state.content):
            raise NotKnown("what ranks have in common is another than was expected")
        traced, at = _Traced(state), iter(resolved)
        rows = [(file.name, [traced.of(part, next(at)) for part in file.parts]) for file in files]
        return cls(state, config, common is not None, rows, places)

    def fits(self, state: State, config: bytes) -> bool:
        return state.shape == self.shape and state.content == self.content and config == self.config

    def files(self, state: State) -> list[File]:
        """Of a state that fits. Raises what pickle raises."""
        storages = state.facts.storages
        return [File(name, [self._part(row, state, storages) for row in rows]) for name, rows in self._files]

    @staticmethod
    def _part(row: _OfTensor | _OfObjects, state: State, storages: list[torch.UntypedStorage]) -> Part:
        if isinstance(row, _OfObjects):
            return Part.of_state([one.data for one in state.objects[row.key]])
        if row.storage is None:
            return Part(row.head, (torch.UntypedStorage(0),), True)
        return Part(row.head, (storages[row.storage][row.begin : row.end],), True)


class _Traced:
    """Parts of files, by which tensor or object of a state they are."""

    def __init__(self, state: State):
        self._state = state
        with torch.no_grad():
            begins = [tensor.data_ptr() for tensor in state.facts.tensors]
        # Tensors with data, by where they begin; of those that begin at one place the longest last.
        sizes = [tensor.nbytes for tensor in state.facts.tensors]
        self._known = sorted((begin, size, which) for which, (begin, size) in enumerate(zip(begins, sizes, strict=True)) if size)
        self._begins = [begin for begin, *_ in self._known]

    def of(self, part: Part, resolved: Any) -> _OfTensor | _OfObjects:
        if not isinstance(resolved, torch.Tensor):
            return self._objects(part, resolved)
        if not part.archive or len(part.storages) != 1:
            raise NotKnown("a tensor that is not written as it is")
        size = part.storages[0].nbytes()
        if not size:
            return _OfTensor(part.head, None, 0, 0)
        address = part.storages[0].data_ptr()
        at = bisect_right(self._begins, address) - 1
        if at < 0 or address + size > self._known[at][0] + self._known[at][1]:
            raise NotKnown("a tensor that was copied before")
        which = self._known[at][2]
        begin = address - self._state.facts.places[which]
        return _OfTensor(part.head, which, begin, begin + size)

    def _objects(self, part: Part, key: str) -> _OfObjects:
        if key not in self._state.objects or written([one.data for one in self._state.objects[key]]) != part.head:
            raise NotKnown(f"{key} is not written as it is")
        return _OfObjects(key)
