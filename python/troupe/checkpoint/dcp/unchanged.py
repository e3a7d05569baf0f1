"""A save of plain tensors that are as they were in the save before, but for their numbers and where those are in memory.

What goes wrong without this: asking each of ten thousand tensors for its storage, and telling the native library of ten thousand parts,
takes longer than copying them.

Contract: `files` gives what `Repeated.parts` would. That a state is as before is what outline.py compares, and no less. A state with
DTensors, or with others than plain ones, has no outline; of what a rank has of its DTensors `TensorsAsBefore` compares the rest.
"""

from __future__ import annotations

import dataclasses
import io
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType
from torch.distributed.checkpoint.utils import find_tensor_shard
from torch.distributed.tensor import DTensor

from ..contents import File, Files, FilesAgain
from ..kept_skeleton import NoOutline, Outlined, outlined, taken
from ..outline import Selection
from ..skeleton import InMainMemory, without_collector
from ..tensor_facts import Facts, NotPlain, in_order
from .archives import PLAIN


def seen_in(state: Any, selections: list[Selection]) -> Outlined | None:
    """See `outlined`."""
    try:
        with without_collector():
            return outlined(state, selections)
    except NoOutline:
        return None


def written(value: Any) -> bytes:
    """What PyTorch's writer writes of what is no tensor."""
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


class _Again:
    """The files of a save, to be made again of tensors that are alike."""

    def __init__(self, files: Files, order: list[int], begins: list[int]):
        self._sizes = array("Q", [storage.nbytes() for storage in files.storages])
        self._first = _copy_of(files)  # the save itself may still be copied, from what its files hold
        self._raw = self._first.raw()
        for part in self._first.parts:
            part.storages = ()
        self._taken, self._order, self._begins = taken(order), array("I", order), array("Q", begins)

    @classmethod
    def of(cls, files: Files, facts: Facts, order: list[int | None]) -> _Again | None:
        """`order`: which of the tensors with these facts each is that the file ends with. None: not each is there, or lies in one
        piece in its storage."""
        tensors = files.parts[len(files.parts) - len(order) :]
        found, begins = [], []
        for part, which in zip(tensors, order, strict=True):
            if which is None or len(part.storages) != 1 or facts.elsewhere:
                return None
            size, base = part.storages[0].nbytes(), facts.places[which]
            begin = part.storages[0].data_ptr() - base if size else 0
            if not 0 <= begin <= facts.storages[which].nbytes() - size:
                return None  # a copy: the tensor has gaps
            found.append(which)
            begins.append(begin)
        return cls(files, found, begins)

    def files(self, facts: Facts, heads: Sequence[bytes]) -> FilesAgain:
        located = InMainMemory(in_order(facts.places, self._order, self._begins), self._sizes)
        return FilesAgain(self._first, self._raw, heads, self._taken(facts.storages), located)


class Unchanged:
    """What is kept of a save of a state that has an outline. It holds none of its tensors."""

    def __init__(self, seen: Outlined, again: _Again, heads: list[bytes], paths: list[tuple]):
        """`paths`: of what is no tensor, which comes first in the file."""
        self._outline, self._numbers, self._floats = seen.outline, seen.numbers, seen.floats
        self._again, self._heads, self._paths = again, heads, paths

    @classmethod
    def of(
        cls, state: Any, seen: Outlined, files: Files, items: Sequence[WriteItem], values: Sequence[Any], at: Sequence[int]
    ) -> Unchanged | None:
        """After a save of these files. `values[at[i]]`: what part i is of. None: of such a state nothing is kept."""
        bytes_first = _bytes_first(items)
        known = {id(tensor): which for which, tensor in enumerate(seen.facts.tensors)}
        order = [known.get(id(values[place])) for place in at[bytes_first:]]
        again = _Again.of(files, seen.facts, order)
        paths = paths_of(state)
        heads = [part.head for part in files.parts[:bytes_first]]
        return again and cls(seen, again, heads, [paths[place] for place in at[:bytes_first]])

    def fits(self, seen: Outlined | None) -> bool:
        return seen is not None and seen.outline == self._outline

    def files(self, state: Any, seen: Outlined) -> FilesAgain:
        """Of a state that fits."""
        if seen.numbers != self._numbers or seen.floats != self._floats:
            self._heads = [written(_found(state, path)) for path in self._paths]
        self._outline, self._numbers, self._floats = seen.outline, seen.numbers, seen.floats
        return self._again.files(seen.facts, self._heads)


class TensorsAsBefore:
    """The same for a state of which only the structure was compared: what this rank has of its tensors is looked at here."""

    def __init__(self, again: _Again, compared: list[Any], at: Sequence[int], bytes_first: int, local: list[bool]):
        self._again, self._compared = again, compared
        self._bytes, self._tensors, self._local = at[:bytes_first], at[bytes_first:], local

    @classmethod
    def of(
        cls, files: Files, items: Sequence[WriteItem], values: Sequence[Any], at: Sequence[int]
    ) -> TensorsAsBefore | None:
        """See `Unchanged.of`. None also for shards of another kind than DTensors."""
        bytes_first = _bytes_first(items)
        tensors = [values[place] for place in at[bytes_first:]]
        local = [type(tensor) is DTensor for tensor in tensors]
        with torch.no_grad():
            for item, tensor in zip(items[bytes_first:], tensors, strict=True):
                if type(tensor) is DTensor and find_tensor_shard(tensor, item.index) is not tensor._local_tensor:
                    return None
        facts = _facts_of(tensors, local)
        again = facts and _Again.of(files, facts, list(range(len(tensors))))
        return cls(again, facts.compared, at, bytes_first, local) if facts and again else None

    def files(self, values: Sequence[Any]) -> FilesAgain | None:
        """None: other tensors than before."""
        facts = _facts_of([values[place] for place in self._tensors], self._local)
        if not facts or facts.compared != self._compared:
            return None
        return self._again.files(facts, [written(values[place]) for place in self._bytes])


def _facts_of(tensors: list[Any], local: list[bool]) -> Facts | None:
    """Of what this rank has of them; None if that is more than plain tensors."""
    mine = [tensor._local_tensor if is_local else tensor for tensor, is_local in zip(tensors, local, strict=True)]
    if not PLAIN.issuperset(map(type, mine)):
        return None
    try:
        with without_collector():
            return Facts(mine)
    except NotPlain:
        return None


def _bytes_first(items: Sequence[WriteItem]) -> int:
    return sum(item.type is WriteItemType.BYTE_IO for item in items)


def _copy_of(files: Files) -> Files:
    return Files([File(file.name, [dataclasses.replace(part) for part in file.parts]) for file in files.files])


def _found(state: Any, path: tuple) -> Any:
    for key in path:
        state = state[key]
    return state


def paths_of(state: Any) -> list[tuple]:
    """Of all values of a state, in the order of `walked`, by the keys as they are."""
    found: list[tuple] = []
    _add_paths(state, (), found)
    return found


def _add_paths(value: Any, path: tuple, found: list[tuple]) -> None:
    found.append(path)
    if isinstance(value, torch.Tensor):
        return
    if isinstance(value, Mapping):
        for key, each in value.items():
            _add_paths(each, (*path, key), found)
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _add_paths(each, (*path, i), found)
