"""Images that are lost, from what other nodes hold of them: which can be had again, which rank sends what to which, and the sums."""

from __future__ import annotations

import contextlib
import logging
import mmap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from . import library
from .arena import Arena, View
from .image import Destination, Image
from .library import CheckpointError
from .ranks import Agreement, summary
from .stripes import Code, HeldPiece, Term, accumulate, crc32, held

log = logging.getLogger("troupe.checkpoint")

PIECE = 64 << 20  # bytes that are sent at once

Made = tuple[int, int]  # the generation that made an image, and its step
Images = Mapping[int, Mapping[Made, int]]  # of each rank that keeps some their sizes


# ---- Which rank sends what to which: all ranks know the same and decide alike ----


@dataclass(frozen=True)
class Parity:
    """One that a rank's node holds; `number`: which of those that it told of."""

    at: int
    number: int
    made: Made
    code: Code
    stripe: int
    row: int
    ranks: tuple[int, ...]
    bytes: tuple[int, ...]
    crc32: tuple[int, ...]

    def fits(self, images: Images) -> bool:
        """Whether the images that are there still have the sizes that were summed."""
        sizes = [images.get(rank, {}).get(self.made) for rank in self.ranks]
        return all(
            size in (None, summed)
            for member, (size, summed) in enumerate(zip(sizes, self.bytes, strict=True))
            if self.code.piece_of(member, self.stripe) is not None
        )


@dataclass(frozen=True)
class Transfer:
    """Bytes `begin` to `end` of a rank's image, or of a parity that it holds, times a factor, are added at `into`."""

    source: int
    parity: int | None  # its number at the source
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
class Plan:
    """How all ranks come to have the images of one step."""

    made: Made
    rebuilt: list[Rebuilt] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)


def plan(
    images: Images, parities: Sequence[Parity], without: Collection[Made] = ()
) -> Plan | None:
    """For the newest step of which every rank has its image or can get it again."""
    known = {made for sizes in images.values() for made in sizes} | {p.made for p in parities}
    for made in sorted(known - set(without), reverse=True):
        of_step = [p for p in parities if p.made == made and p.fits(images)]
        found = Plan(made)
        lacking = [rank for rank, sizes in sorted(images.items()) if made not in sizes]
        if all(_plan_one(found, rank, images, of_step) for rank in lacking):
            return found
    return None


def _plan_one(into: Plan, rank: int, images: Images, parities: Sequence[Parity]) -> bool:
    for code, ranks in sorted(
        {(p.code, p.ranks) for p in parities if rank in p.ranks},
        key=lambda group: (group[0].members, group[0].parity, group[1]),
    ):
        of_group = [p for p in parities if (p.code, p.ranks) == (code, ranks)]
        lost = ranks.index(rank)
        said = {
            (p.bytes[lost], p.crc32[lost])
            for p in of_group
            if code.piece_of(lost, p.stripe) is not None
        }
        if len(said) != 1:
            continue  # nothing is said of it, or not the same by all
        [(size, checksum)] = said
        transfers = _transfers(into.made, lost, size, images, of_group)
        if transfers is not None:
            into.rebuilt.append(Rebuilt(rank, size, checksum))
            into.transfers.extend(transfers)
            return True
    return False


def _transfers(
    made: Made, lost: int, size: int, images: Images, parities: Sequence[Parity]
) -> list[Transfer] | None:
    """What makes up the image of a member of one group."""
    code, ranks = parities[0].code, parities[0].ranks
    there = {m: images[r][made] for m, r in enumerate(ranks) if made in images.get(r, {})}
    found: list[Transfer] = []
    for stripe in range(code.members):
        piece = code.piece_of(lost, stripe)
        if piece is None:
            continue
        rows = _rows(ranks[lost], [p for p in parities if p.stripe == stripe])
        terms = code.terms(stripe, lost, there, rows)
        if terms is None:
            return None
        begin, end = code.piece_in(size, piece)
        for term in terms:
            source, number, first, last = _part(term, code, stripe, ranks, there, rows)
            last = min(last, first + end - begin)
            if first < last:
                found.append(
                    Transfer(source, number, first, last, ranks[lost], begin, term.times)
                )
    return found


def _rows(near: int, parities: Sequence[Parity]) -> dict[int, Parity]:
    """One parity of each row, all of the same images; best those that the rank `near` has."""
    rows: dict[int, Parity] = {}
    for p in sorted(parities, key=lambda p: (p.at != near, p.at, p.number)):
        first = next(iter(rows.values()), p)
        if (p.bytes, p.crc32) == (first.bytes, first.crc32):
            rows.setdefault(p.row, p)
    return rows


def _part(
    term: Term,
    code: Code,
    stripe: int,
    ranks: Sequence[int],
    there: Mapping[int, int],
    rows: Mapping[int, Parity],
) -> tuple[int, int | None, int, int]:
    """Of a term: the rank that has it, the number of the parity, and where it begins and ends."""
    if term.parity:
        parity = rows[term.which]
        longest = max(_given(code, stripe, parity.bytes))
        return parity.at, parity.number, library.HELD_BEFORE, library.HELD_BEFORE + longest
    piece = code.piece_of(term.which, stripe)
    assert piece is not None
    return ranks[term.which], None, *code.piece_in(there[term.which], piece)


def _given(code: Code, stripe: int, sizes: Sequence[int]) -> Iterator[int]:
    """How much members give to a stripe whose images have these sizes."""
    for member, size in enumerate(sizes):
        piece = code.piece_of(member, stripe)
        if piece is not None:
            begin, end = code.piece_in(size, piece)
            yield end - begin


# ---- How it is carried out: every method is a collective call ----


class Rebuilding:
    """`mine`: this rank's images; `others`: where its node holds pieces for it, if there is such memory."""

    def __init__(
        self, ranks: Agreement, arena: Arena | None, others: View | None, mine: Mapping[Made, Image]
    ):
        self.ranks = ranks
        self.arena = arena
        self.mine = mine
        self.held = [piece for piece in held(others) if self._usable(piece)] if others else []

    def _usable(self, piece: HeldPiece) -> bool:
        world_size = self.ranks.me.world_size
        return piece.image.world_size == world_size and all(r < world_size for r in piece.ranks)

    def known(self) -> tuple[Images, list[Parity]]:
        """What all ranks have."""
        mine = [
            number for made, image in self.mine.items() for number in (*made, image.bytes)
        ]
        rows = self.ranks.gather(
            [
                self.arena is not None,
                len(self.mine),
                *_filled(mine, 3 * library.SLOTS),
                len(self.held),
                *_filled([n for piece in self.held for n in _numbers(piece)], PARITIES),
            ]
        )
        images, parities = {}, []
        for rank, (keeps, images_count, *row) in enumerate(rows):
            triples = [row[3 * i : 3 * i + 3] for i in range(images_count)]
            if keeps:
                images[rank] = {(made_by, step): size for made_by, step, size in triples}
            count, *numbers = row[3 * library.SLOTS :]
            for i in range(count):
                parities.append(_parity(rank, i, numbers[i * NUMBERS : (i + 1) * NUMBERS]))
        return images, parities

    def carry_out(self, what: Plan, to: Callable[[int], Destination | None]) -> bool:
        """After it every arena has the images of that step. False: what was summed is not what was saved."""
        me = self.ranks.me
        lost = next((one for one in what.rebuilt if one.rank == me.rank), None)
        with contextlib.ExitStack() as undone:
            reason, sources, unfinished = "", _Sources(self.mine.get(what.made), self.held), None
            try:
                sources.open(t.parity for t in what.transfers if t.source == me.rank)
                if lost and self.arena:
                    unfinished = self.arena.begin(
                        lost.bytes,
                        what.made[1],
                        generation=what.made[0],
                        rank=me.rank,
                        world_size=me.world_size,
                    )
                    undone.callback(self.arena.abandon, unfinished)
            except (CheckpointError, OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
            self.ranks.require(reason)
            memory = torch.empty(0, dtype=torch.uint8)
            if unfinished and lost and lost.bytes:
                memory = torch.frombuffer(unfinished.memory, dtype=torch.uint8).zero_()
            for transfer in what.transfers:
                self._carry(transfer, sources, memory)
            if lost and crc32(memory) != lost.crc32:
                reason = f"step {what.made[1]} from pieces at other nodes is damaged"
            if reasons := self.ranks.objections(reason):
                log.error("an older step is looked for: %s", summary(reasons))
                return False
            undone.pop_all()
        if unfinished and self.arena:
            self.arena.finish(unfinished, to(what.made[1]))
        return True

    def _carry(self, transfer: Transfer, sources: _Sources, memory: torch.Tensor) -> None:
        me = self.ranks.me.rank
        if me not in (transfer.source, transfer.to):
            return
        for begin in range(transfer.begin, transfer.end, PIECE):
            size = min(PIECE, transfer.end - begin)
            if me == transfer.source:
                part = sources.memory[transfer.parity][begin : begin + size]
            else:
                part = torch.empty(size, dtype=torch.uint8)
            if transfer.source != transfer.to:
                self.ranks.pass_on(part, transfer.source, transfer.to)
            if me == transfer.to:
                at = transfer.into + begin - transfer.begin
                accumulate(memory[at : at + size], part, transfer.times)


class _Sources:
    """What this rank sends of, by the number of a parity; None: its own image."""

    def __init__(self, image: Image | None, held_here: Sequence[HeldPiece]):
        self.image = image
        self.held = held_here
        self.memory: dict[int | None, torch.Tensor] = {}

    def open(self, numbers: Iterator[int | None]) -> None:
        for number in set(numbers):
            image = self.image if number is None else self.held[number].image
            assert image
            # Of one's own, since torch asks for memory that can be written to.
            mapped = mmap.mmap(image.descriptor, image.bytes, flags=mmap.MAP_PRIVATE)
            self.memory[number] = torch.frombuffer(mapped, dtype=torch.uint8)


# ---- A piece as numbers ----

NUMBERS = 6 + 3 * library.MEMBERS
PARITIES = library.SLOTS * NUMBERS


def _filled(numbers: list[int], room: int) -> list[int]:
    return numbers + [0] * (room - len(numbers))


def _numbers(piece: HeldPiece) -> list[int]:
    image, code = piece.image, piece.code
    numbers = [image.generation, image.step, code.members, code.parity, piece.stripe, piece.row]
    for of_members in (piece.ranks, piece.bytes, piece.crc32):
        numbers += _filled(list(of_members), library.MEMBERS)
    return numbers


def _parity(at: int, number: int, numbers: Sequence[int]) -> Parity:
    made_by, step, members, parity, stripe, row, *rest = numbers
    ranks, sizes, sums = (
        tuple(rest[i : i + members]) for i in range(0, len(rest), library.MEMBERS)
    )
    return Parity(
        at, number, (made_by, step), Code(members, parity), stripe, row, ranks, sizes, sums
    )
