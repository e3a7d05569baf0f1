"""All that a state's pickle depends on but for its numbers, so that two states can be compared without being pickled.

What goes wrong without this: pickling a state of thousands of tensors takes longer than copying them, and the next save's pickle is the
same but for a learning rate.

Contract: two states whose outlines are equal and whose numbers are equal have the same pickle, byte for byte, with the storages of
the same tensors in it. An outline says too much rather than too little: states that differ in it may have the same pickle. A state
that holds anything else than `KINDS` has no outline, nor has one with a tensor that is not plain.

A pickler writes an object for the second time as a reference to the first. So an outline says which of all objects are the same one,
be they equal or not: names too, since `"step"` twice may be one object or two.

What is done for each object is done by functions that are not Python's own code, for many objects at once; and what is kept lies side by
side in memory. Both are what makes it fast.
"""

from __future__ import annotations

import copyreg
import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from operator import attrgetter, is_, itemgetter
from typing import Any

import torch

from . import library
from .skeleton import taggers_are_torchs_own
from .tensor_facts import Facts, NotPlain

LEVELS_MAX = 64  # of containers in containers
OBJECTS_MAX = 1 << 20  # of a level

NUMBERS = (int, float, bool, type(None))  # whose identity does not matter
TENSORS = (torch.Tensor, torch.nn.Parameter)
CONTAINERS = (dict, OrderedDict, list, tuple)
KINDS = frozenset([*NUMBERS, *TENSORS, *CONTAINERS, str])  # exactly these, none derived from them

# Objects that a pickler meets in each tensor and that a state may hold as well.
_MET_ANYWAY = [sys.intern(name) for name in ("storage", "cpu", "cuda", "hpu", "mps", "mtia", "xpu")]
_MET_ANYWAY += [chr(ord("0") + key) for key in range(10)]  # of one character there is one string
_MET = {id(one): -1 - which for which, one in enumerate(_MET_ANYWAY)}
_NO_DATA = {0: -1}
_NONE: dict[int, int] = {}

_flat = chain.from_iterable


class NoOutline(Exception):
    """The state holds what outlines do not know."""


class Selection:
    """Where the objects of each kind stand in a level: a function of the kinds alone, and so kept from save to save."""

    def __init__(self, kinds: list[type]):
        places: dict[type, list[int]] = {}
        for place, kind in enumerate(kinds):
            places.setdefault(kind, []).append(place)
        if not places.keys() <= KINDS:
            raise NoOutline
        self.kinds = kinds

        def all_of(*chosen: type) -> Callable[[list], Sequence]:
            return taken(sorted(_flat(places.get(kind, ()) for kind in chosen)))

        self.dicts, self.ordered, self.lists, self.tuples = map(all_of, CONTAINERS)
        self.strings = all_of(str)
        self.tensors = all_of(*TENSORS)
        self.numbers, self.floats = all_of(*NUMBERS), all_of(float)
        self.identified = all_of(*KINDS.difference(NUMBERS))

    def containers(self, level: list) -> list:
        return [*self.dicts(level), *self.ordered(level), *self.lists(level), *self.tuples(level)]

    def inside(self, level: list) -> list:
        """What they hold, in the same order, the OrderedDicts' attributes (a module's `_metadata`) behind what those hold."""
        ordered = self.ordered(level)
        entries = chain(map(dict.items, self.dicts(level)), map(OrderedDict.items, ordered))
        others = _flat(self.lists(level)), _flat(self.tuples(level))
        return [*_flat(_flat(entries)), *map(vars, ordered), *_flat(others)]

    def fits(self, kinds: list[type]) -> bool:
        return len(kinds) == len(self.kinds) and all(map(is_, kinds, self.kinds))


def taken(places: list[int]) -> Callable[[list], Sequence]:
    """What stands at these places of a list, as one call takes it."""
    if not places:
        return lambda level: ()
    step = places[1] - places[0] if len(places) > 1 else 1
    if places == list(range(places[0], places[-1] + 1, step)):
        return itemgetter(slice(places[0], places[-1] + 1, step))
    return itemgetter(*places)


class Same:
    """Which of some objects are the same one."""

    def __init__(self, identities: array[int], known: dict[int, int]):
        self._identities = identities
        self._known = known
        self._first: array[int] | None = None

    def first(self) -> array[int]:
        """Of each, which is the first that is the same one; below 0, which of the known."""
        if self._first is None:
            first = dict(self._known)
            self._first = array("q", map(first.setdefault, self._identities, count()))
        return self._first

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return NotImplemented
        mine, others, known = self._identities, other._identities, array("Q", self._known)
        if len(mine) != len(others) or self._known is not other._known:
            return False
        if mine == others:
            return True
        begins = [each.buffer_info()[0] for each in (mine, others, known)]
        same = library.load().troupe_same_pattern(*begins[:2], len(mine), begins[2], len(known))
        return bool(same)


@dataclass
class Outline:
    """Holds no tensor and no storage: it may be kept while the state is not."""

    rules: tuple  # by which objects are pickled
    levels: list[Selection]
    lengths: list[array[int]]  # of the containers of each level
    strings: tuple[array[int], str]  # how long each is, and all of them
    same: Same  # of all objects but numbers
    tensors: list  # what is written of each, one entry for each fact


@dataclass
class Outlined:
    """A state, as long as it is saved."""

    outline: Outline
    numbers: list  # level by level
    floats: bytes  # of those, bit for bit: 0.0 equals -0.0
    facts: Facts  # of its tensors


def outlined(state: Any, known: list[Selection]) -> Outlined:
    """`known`: the selections of the outline before, which are used again, and replaced where they do not fit.

    Raises NoOutline.
    """
    lengths: list[array[int]] = []
    levels: list[list] = []
    level, above = [state], set[int]()
    while level:
        if len(levels) == LEVELS_MAX:
            raise NoOutline
        selection = _selection(len(levels), list(map(type, level)), known)
        levels.append(level)
        containers = selection.containers(level)
        lengths.append(array("q", map(len, containers)))
        here = set(map(id, filter(None, containers)))
        if not above.isdisjoint(here) or sum(lengths[-1]) > OBJECTS_MAX:
            raise NoOutline  # one may hold itself
        above |= here
        level = selection.inside(level)
    del known[len(levels) :]

    def all_that(which: str) -> Iterable:
        chosen = map(attrgetter(which), known)
        return _flat(choose(level) for choose, level in zip(chosen, levels, strict=True))

    try:
        facts = Facts(list(all_that("tensors")))
    except NotPlain as error:
        raise NoOutline from error
    same = Same(array("Q", map(id, all_that("identified"))), _MET)
    names = list(all_that("strings"))
    strings = array("q", map(len, names)), "".join(names)
    floats = array("d", all_that("floats")).tobytes()
    # Data that is viewed as two types is refused, be it of two storages.
    data = Same(facts.identities, _NONE), Same(facts.places, _NO_DATA)
    outline = Outline(_rules(), list(known), lengths, strings, same, [*facts.compared, *data])
    return Outlined(outline, list(all_that("numbers")), floats, facts)


def _rules() -> tuple:
    """Programs may register others."""
    if not taggers_are_torchs_own():
        raise NoOutline
    reduced = (*TENSORS, OrderedDict)
    registered = map(copyreg.dispatch_table.get, reduced)
    return *(kind.__reduce_ex__ for kind in reduced), *registered


def _selection(depth: int, kinds: list[type], known: list[Selection]) -> Selection:
    if depth < len(known) and known[depth].fits(kinds):
        return known[depth]
    selection = Selection(kinds)
    known[depth:] = [selection]
    return selection
