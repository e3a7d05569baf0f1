"""Copies of images in other nodes' memory: which node holds pieces of which, and how far the last ones have got."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .arena import Arena
from .image import Image
from .library import MEMBERS as MEMBERS_MAX
from .library import CheckpointError
from .ranks import Agreement
from .stripes import Code, Group

log = logging.getLogger("troupe.checkpoint")

ADDRESS = "TROUPE_COPIES_ADDRESS"  # set by actor-launcher: where others give their pieces to this node
PARITY_MAX = 4

# What a rank says of its last copies.
UNDER_WAY, FAILED, HELD, NONE = range(4)


@dataclass(frozen=True)
class Redundancy:
    """Of each `members` nodes that follow each other `parity` may be lost at once. A node gives 1 / (members - parity) of an
    image to each of its stripes, of which there are so many; with members = parity + 1 that is the whole image, a copy.
    """

    members: int
    parity: int

    @classmethod
    def chosen(cls, replica_count: int, parity: int, parity_group: int) -> Redundancy | None:
        """`replica_count`: an image is in the memory of so many nodes; below 2 only in its own. Or `parity` (1: XOR, 2:
        Reed-Solomon) over groups of `parity_group` nodes. Raises ValueError for what cannot be.
        """
        if not 0 <= replica_count <= PARITY_MAX + 1:
            raise ValueError(f"replica_count is {replica_count!r}; it is 0 to {PARITY_MAX + 1}")
        if not 0 <= parity <= 2:
            raise ValueError(f"parity is {parity!r}; it is 0, 1 (XOR) or 2 (Reed-Solomon)")
        if replica_count > 1 and parity:
            raise ValueError("replica_count and parity exclude each other: copies, or parities")
        if parity and not parity < parity_group <= MEMBERS_MAX:
            raise ValueError(
                f"parity_group is {parity_group!r}; with parity {parity} it is {parity + 1} to {MEMBERS_MAX} nodes"
            )
        if replica_count > 1:
            return cls(replica_count, replica_count - 1)
        return cls(parity_group, parity) if parity else None

    def groups(self, nodes: Sequence[int]) -> list[Sequence[int]]:
        """Those of them that hold pieces of each other's images: as many groups as there can be, which nodes that are left
        over join. Copies become sums in a group with more nodes than `members`. Where more than two may be lost nothing but
        copies will do: there the nodes that are left over make a smaller group.
        """
        count = len(nodes)
        if self.parity > 2:
            ends = [*range(0, count, self.members), count]
        else:
            groups = max(1, count // self.members, -(-count // MEMBERS_MAX))
            ends = [count * number // groups for number in range(groups + 1)]
        return [nodes[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]


def agreed_group(ranks: Agreement, how: Redundancy, saves: bool, within: float) -> Group | None:
    """Of this rank; none if it does not save, or no other node can hold its image. Collective."""
    me = ranks.me
    address = os.environ.get(ADDRESS, "")
    rows = ranks.gather([saves, me.local_rank, me.node, bool(address)])
    addresses = ranks.texts(address)
    without = [rank for rank, row in enumerate(rows) if row[0] and not row[3]]
    nodes = sorted({row[2] for row in rows if row[0]})
    if without or len(nodes) < 2:
        why = "there is one node" if len(nodes) < 2 else f"the node of rank {without[0]} takes none"
        log.warning("rank %d: images are not held by other nodes: %s", me.rank, why)
        return None
    if not saves:
        return None
    [members] = [group for group in how.groups(nodes) if me.node in group] or [[me.node]]
    theirs = [
        rank
        for node in members
        for rank, row in enumerate(rows)
        if row[0] and row[1:3] == [me.local_rank, node]
    ]
    if len(theirs) < 2:
        log.warning("rank %d: its images are not held by other nodes: it is alone", me.rank)
        return None
    code = Code(len(theirs), min(how.parity, len(theirs) - 1))
    addressed = [addresses[rank] for rank in theirs]
    return Group(code, theirs.index(me.rank), theirs, addressed, within)


@dataclass
class _Wanted:
    generation: int
    step: int
    slot: int = -1
    image: Image | None = None  # none as long as it is being saved

    def find(self, images: Sequence[Image]) -> None:
        for image in images:
            if (image.slot, image.generation, image.step) == (self.slot, self.generation, self.step):
                self.image = image


class Copies:
    """This rank's images at other nodes. One step at a time is on its way, the same at all ranks; the newest that all have
    there stays in every arena until the next one is. What was saved last while another was on its way is `skipped`.
    """

    def __init__(self, arena: Arena, group: Group):
        self._arena = arena
        self.group = group
        self._last: _Wanted | None = None
        self.skipped: tuple[int, int] | None = None  # step and generation
        self._held: int | None = None  # the step of the last that all ranks have there

    def want(self, step: int, generation: int, image: Image | None = None) -> None:
        """Of an image of this step; none: of what was saved last."""
        self._last, self.skipped = _Wanted(generation, step), None
        try:
            self._last.slot = self._arena.want_copies(self.group, image)
            self._last.image = image
        except CheckpointError as error:
            log.warning("step %d is not held by other nodes: %s", step, error)

    def skip(self, step: int, generation: int) -> None:
        self.skipped = (step, generation)

    def want_skipped(self) -> None:
        """It is still what was saved last: a later save would have been wanted or skipped."""
        if self.skipped:
            self.want(*self.skipped)

    def state(self, within: float = 0) -> int:
        """How far the last ones are; waits `within` seconds for that to be known."""
        if self._last is None:
            return NONE
        if not self._last.image:  # it is whole now, or was given up
            self._last.find(self._arena.found())
        if not self._last.image:
            return FAILED
        try:
            done = self._arena.copies_settled(self._last.image, within)
        except CheckpointError:
            return FAILED  # the node has logged why
        return HELD if done else UNDER_WAY

    def agree(self, states: Sequence[int]) -> bool:
        """What all ranks said of their last ones. Whether the next may be made."""
        if UNDER_WAY in states:
            return False
        if self._last and FAILED not in states:
            try:
                self._arena.keep_for_others(self._last.image)
                self._held = self._last.step
            except CheckpointError as error:
                log.warning("step %d does not stay in memory: %s", self._last.step, error)
        return True

    @property
    def held(self) -> int | None:
        """The newest step that all ranks have at other nodes, as far as they have said so to each other."""
        return self._held
