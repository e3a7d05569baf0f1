"""The skeleton of the last state, of which most is the next one's: only what has changed is written again."""

from __future__ import annotations

import pickle
import re
import struct
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from itertools import count
from typing import Any

import torch

from .outline import CONTAINERS, NUMBERS, NoOutline, Outline, Outlined, Selection, outlined, taken
from .skeleton import PROTOCOL, InMainMemory, Pickler, Skeleton, dumped, without_collector
from .tensor_facts import Facts, in_order

# A number's place: a persistent id that is itself a number, 'G' and 8 bytes that begin with the tag, and the operation 'Q'.
_TAG = b"C\xf1\x9e\x5a"
_PLACE = re.compile(b"G" + re.escape(_TAG) + b"(....)Q", re.DOTALL)


class _MarkingPickler(Pickler):
    """Writes, instead of each number of the state but for those of its tensors, a mark."""

    def __init__(self, file: Any):
        super().__init__(file)
        self._numbers_of_tensors = 0  # that come next
        self._marks = map(_mark, count())

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) not in NUMBERS:
            return super().persistent_id(obj)
        if self._numbers_of_tensors:
            self._numbers_of_tensors -= 1
            return None
        return next(self._marks)

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is torch.Tensor:  # size of the storage, offset, shape, strides, whether it requires a gradient
            self._numbers_of_tensors += 3 + 2 * obj.dim()
        elif type(obj) is torch.nn.Parameter:
            self._numbers_of_tensors += 1
        return super().reducer_override(obj)


def _mark(which: int) -> float:
    return struct.unpack(">d", _TAG + struct.pack(">I", which))[0]


def _written(number: Any) -> bytes:
    return pickle.dumps(number, PROTOCOL)[2:-1]  # without the protocol's number before it and the stop behind it


class Kept:
    """A state's skeleton. It holds none of its tensors."""

    def __init__(self, seen: Outlined, skeleton: Skeleton):
        self.outline = seen.outline
        self._pickle = skeleton.pickle
        self._numbers = seen.numbers
        self._floats = seen.floats
        # Around the numbers' places: bytes, number, bytes, number, …, bytes.
        self._parts: list[bytes] | None = None
        self._order: list[int] = []  # in which they stand there
        self._is_marked = False
        by_storage: dict[int, int] = {}
        for which, identity in enumerate(seen.facts.identities):
            by_storage.setdefault(identity, which)
        order = [by_storage[storage._cdata] for storage in skeleton.storages]
        self._storages, self._order_of_storages = taken(order), array("I", order)
        self._sizes = array("Q", [storage.nbytes() for storage in skeleton.storages])

    def skeleton(self, state: Any, seen: Outlined) -> Skeleton:
        """Of a state with an equal outline."""
        self.outline = seen.outline  # in which identities are those that the next one likely has
        if seen.numbers != self._numbers or seen.floats != self._floats:
            if self._parts is None:
                self._pickle = dumped(state, Pickler).pickle
                self.find_numbers(state, seen)
            else:
                self._write(seen, self._parts)
            self._numbers, self._floats = seen.numbers, seen.floats
        return Skeleton(self._pickle, self._storages(seen.facts.storages), self._located(seen.facts))

    def _located(self, facts: Facts) -> InMainMemory | None:
        if facts.elsewhere:
            return None
        return InMainMemory(in_order(facts.places, self._order_of_storages), self._sizes)

    def find_numbers(self, state: Any, seen: Outlined) -> None:
        """Where they stand in the pickle, which is this state's, if that can be known; once."""
        if self._is_marked:
            return
        self._is_marked = True
        parts = _PLACE.split(dumped(state, _MarkingPickler).pickle)
        self._order = list(_pickling_order(seen.outline))
        if len(parts) != 2 * len(self._order) + 1:
            return
        parts[1::2] = [_written(seen.numbers[which]) for which in self._order]
        if b"".join(parts) == self._pickle:
            self._parts = parts

    def _write(self, seen: Outlined, parts: list[bytes]) -> None:
        for turn, which in enumerate(self._order):
            now, before = seen.numbers[which], self._numbers[which]
            if now is not before and (type(now) is float or now != before):
                parts[2 * turn + 1] = _written(now)
        self._pickle = b"".join(parts)


def _pickling_order(outline: Outline) -> Iterator[int]:
    """In which order a pickler comes to the numbers, which are counted level by level: into each container where it meets it first."""
    below = [_spans(one, lengths) for one, lengths in zip(outline.levels, outline.lengths, strict=True)]
    numbers, same = count(), iter(outline.same.first())
    labels = [
        [next(numbers) if kind in NUMBERS else next(same) for kind in one.kinds] for one in outline.levels
    ]
    met: set[int] = set()
    ahead = [(0, 0)]
    while ahead:
        depth, place = ahead.pop()
        kind, label = outline.levels[depth].kinds[place], labels[depth][place]
        if kind in NUMBERS:
            yield label
        elif kind in CONTAINERS and label not in met:
            met.add(label)
            for span in reversed(below[depth][place]):
                ahead += [(depth + 1, inner) for inner in reversed(span)]


def _spans(selection: Selection, lengths: list[int]) -> dict[int, list[range]]:
    """Of each container of a level, by its place: where the next level has what is inside it, in the order of pickling."""
    places = range(len(selection.kinds))
    groups = [
        [place for place in places if selection.kinds[place] is kind] for kind in CONTAINERS
    ]
    spans: dict[int, list[range]] = {}
    at, length = 0, iter(lengths)
    for kind, group in zip(CONTAINERS, groups, strict=True):
        for place in group:
            end = at + next(length) * (2 if kind in (dict, OrderedDict) else 1)
            spans[place], at = [range(at, end)], end
        if kind is OrderedDict:
            for place in group:
                spans[place].append(range(at, at + 1))
                at += 1
    return spans


class Skeletons:
    """Those of the states of one arena, one after the other."""

    def __init__(self) -> None:
        self._kept: Kept | None = None
        self._known: set[Any] = set()  # classes and functions in the pickles of states without an outline
        self._unknown = b""  # the first such pickle with others
        self._selections: list[Selection] = []

    def of(self, state: Any) -> Skeleton:
        """What `pickled` gives, byte for byte, and raises what it raises."""
        with without_collector():
            return self._of(state)

    def take_unknown(self) -> bytes:
        """The first pickle since the last call that has classes or functions which no state before had; empty if there is none. Tensors,
        numbers, strings and their containers do not count."""
        pickle, self._unknown = self._unknown, b""
        return pickle

    def prepare(self, state: Any) -> Skeleton:
        """As `of`. What else is done when numbers have changed for the first time is done now."""
        skeleton = self.of(state)
        if self._kept:
            with without_collector():
                self._kept.find_numbers(state, outlined(state, self._selections))
        return skeleton

    def _of(self, state: Any) -> Skeleton:
        try:
            seen = outlined(state, self._selections)
        except NoOutline:
            self._kept = None
            skeleton = dumped(state, Pickler)
            if not skeleton.met <= self._known:
                self._known |= skeleton.met
                self._unknown = self._unknown or skeleton.pickle
            return skeleton
        if self._kept and self._kept.outline == seen.outline:
            return self._kept.skeleton(state, seen)
        self._kept = None
        skeleton = dumped(state, Pickler)
        self._kept = Kept(seen, skeleton)
        return skeleton
