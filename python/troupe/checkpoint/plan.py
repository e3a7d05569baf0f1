"""What all ranks go on from, as the native library plans it: ckpt/load/load_plan.hpp says how, load_numbers.hpp in which numbers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from . import library
from .arena import Arena, View
from .ranks import Rank

FIRST_ROOM = 1 << 14  # numbers; a view or plan that has more is asked for again


class Outcome(IntEnum):
    NOTHING, LOAD, LOOK_AGAIN, LOOK_DEEPER, MISFIT, RESHARD = range(6)


class Source(IntEnum):
    MEMORY, PEER, PIECES, DISK = range(4)


@dataclass(frozen=True, order=True)
class StateId:
    """Of two states the newer is the greater one, wherever they are: docs/adr/0020-one-order-of-saves.md."""

    generation: int  # that saved it,
    save: int  # and which of its saves it was
    step: int


@dataclass(frozen=True)
class Transfer:
    """Bytes `begin` to `end` of an image, of rank `of`'s part, or of a parity that the source's node holds, times a factor, are
    added at `into`."""

    source: int
    of: int
    parity: tuple[int, int] | None  # slot and sequence at the source
    begin: int
    end: int
    to: int
    into: int
    times: int


@dataclass(frozen=True)
class Rebuilt:
    """A rank's image as it was."""

    rank: int
    bytes: int
    crc32: int


@dataclass(frozen=True)
class Move:
    """The part of rank `to` lies with rank `source`."""

    source: int
    to: int
    bytes: int


@dataclass(frozen=True)
class Part:
    """Of a state of another world."""

    at: int  # the rank that has it in memory
    of: int  # the rank that saved it, in that world


@dataclass(frozen=True)
class Plan:
    """The same at all ranks."""

    outcome: Outcome
    done: bool  # every rank has the state in memory
    what: StateId
    newest_seen: StateId | None  # on a disk
    misfit: tuple[int, int, int]  # world size, shards, step
    sender: int
    sources: list[Source | None]  # by rank; None: it holds no image, or waits
    rebuilt: list[Rebuilt]
    transfers: list[Transfer]
    moves: list[Move]
    parts: list[Part]  # by shard
    lost: tuple[StateId, int] | None  # a state of several shards, and a rank whose part is nowhere


@dataclass(frozen=True)
class Failed:
    """What a rank could not get."""

    rank: int
    source: Source
    what: StateId

    def numbers(self) -> list[int]:
        return [self.rank, self.source, *_of_id(self.what)]


def view(
    arena: Arena | None, others: View | None, place: str | None, steps: int, me: Rank, shards: int
) -> list[int]:
    """What this rank could go on from, with the newest `steps` at a place. Raises CheckpointError if that cannot be looked at."""
    return _numbers(
        "troupe_load_view",
        arena.handle if arena else None,
        others.handle if others else None,
        os.fsencode(place) if place is not None else None,
        steps,
        me.rank,
        me.world_size,
        shards,
    )


def plan(
    views: Sequence[Sequence[int]],
    shards: int,
    seen_before: StateId | None = None,
    failed: Iterable[Failed] = (),
    any_world: bool = False,
) -> Plan:
    """`views`: of every rank, by rank. `any_world`: a state of another world is of use, too."""
    failures = list(failed)
    question = [shards, any_world, *_maybe(seen_before), len(failures)]
    for one in failures:
        question += one.numbers()
    for each in views:
        question += each
    raw = (ctypes.c_uint64 * len(question))(*question)
    return _plan(iter(_numbers("troupe_plan_load", raw, len(question))))


def _numbers(function: str, *arguments: object) -> list[int]:
    room = FIRST_ROOM
    while True:
        raw = (ctypes.c_uint64 * room)()
        count = library.call(function, *arguments, raw, room)
        if count <= room:
            return list(raw[:count])
        room = 2 * count  # there may be more by then


def _of_id(what: StateId) -> list[int]:
    return [what.generation, what.save, what.step]


def _maybe(what: StateId | None) -> list[int]:
    return [1, *_of_id(what)] if what else [0, 0, 0, 0]


def _plan(numbers: Iterator[int]) -> Plan:
    def take(count: int) -> list[int]:
        return [next(numbers) for _ in range(count)]

    outcome, done = take(2)
    what = StateId(*take(3))
    [seen], newest = take(1), StateId(*take(3))
    world_size, shards, step = take(3)
    [sender] = take(1)
    sources = [Source(number - 1) if number else None for number in take(next(numbers))]
    rebuilt = [Rebuilt(*take(3)) for _ in range(next(numbers))]
    transfers = []
    for _ in range(next(numbers)):
        source, of, of_parity, slot, sequence, *rest = take(10)
        transfers.append(Transfer(source, of, (slot, sequence) if of_parity else None, *rest))
    moves = [Move(*take(3)) for _ in range(next(numbers))]
    [is_lost], lost, [lacking] = take(1), StateId(*take(3)), take(1)
    parts = [Part(*take(2)) for _ in range(next(numbers))]
    return Plan(
        Outcome(outcome),
        bool(done),
        what,
        newest if seen else None,
        (world_size, shards, step),
        sender,
        sources,
        rebuilt,
        transfers,
        moves,
        parts,
        (lost, lacking) if is_lost else None,
    )
