"""Copies of images in other nodes' memory: who holds pieces of whose, and how far the last ones have got."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .arena import Arena
from .image import Image
from .library import CheckpointError
from .ranks import Agreement

log = logging.getLogger("troupe.checkpoint")

ADDRESS = "TROUPE_COPIES_ADDRESS"  # set by actor-launcher: where others give their pieces to this node
MEMBERS_MAX = 16
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

    def groups(self, nodes: int) -> list[range]:
        """Nodes that hold pieces of each other's images: as many groups as there can be, nodes that are left over join them.
        With more nodes than `members` in a group of copies these become sums, as long as two may be lost at most; else the
        nodes left over make a smaller group, and one alone has none.
        """
        if nodes < 2:
            return []
        if self.parity > 2:
            ends = [*range(0, nodes, self.members), nodes]
        else:
            count = max(1, nodes // self.members, -(-nodes // MEMBERS_MAX))
            ends = [nodes * number // count for number in range(count + 1)]
        groups = [range(*each) for each in zip(ends, ends[1:], strict=False)]
        return [group for group in groups if len(group) > 1]


@dataclass(frozen=True)
class Group:
    """Ranks at several nodes, in order, that hold pieces of each other's images. `me`: which of them this process is."""

    ranks: tuple[int, ...]
    addresses: tuple[str, ...]
    parity: int
    me: int
    within: float  # seconds that giving an image may take

    @classmethod
    def agreed(cls, ranks: Agreement, how: Redundancy, saves: bool, within: float) -> Group | None:
        """This rank's; none if it does not save, or there is nobody to hold its image. Collective."""
        me = ranks.me
        address = os.environ.get(ADDRESS, "")
        rows = ranks.gather([saves, me.local_rank, me.node, bool(address)])
        addresses = ranks.texts(address)
        without = [rank for rank, row in enumerate(rows) if row[0] and not row[3]]
        nodes = sorted({row[2] for row in rows if row[0]})
        if without or len(nodes) < 2:
            why = f"the node of rank {without[0]} takes none" if without else "there is one node"
            log.warning("rank %d: images are not held by other nodes: %s", me.rank, why)
            return None
        if not saves:
            return None
        for group in how.groups(len(nodes)):
            members = [nodes[number] for number in group]
            if me.node not in members:
                continue
            theirs = [
                rank
                for node in members
                for rank, row in enumerate(rows)
                if row[0] and row[1:3] == [me.local_rank, node]
            ]
            if len(theirs) > 1:
                return cls(
                    tuple(theirs),
                    tuple(addresses[rank] for rank in theirs),
                    min(how.parity, len(theirs) - 1),
                    theirs.index(me.rank),
                    within,
                )
        log.warning("rank %d: its image is not held by other nodes: it is alone", me.rank)
        return None


class Copies:
    """This rank's images at other nodes. One step at a time is on its way, the same at all ranks; the newest that all have
    there stays in every arena until the next one is.
    """

    def __init__(self, arena: Arena, group: Group):
        self._arena = arena
        self.group = group
        self._last: Image | None = None  # of which copies were wanted; its sequence is 0 as long as it is being saved
        self._held: int | None = None  # the step of the last that all ranks have there

    def want(self, image: Image | None = None) -> None:
        """Of an image; none: of what was saved last."""
        self._last = self._arena.want_copies(self.group, image)

    def state(self, within: float = 0) -> int:
        """How far the last ones are; waits `within` seconds for that to be known."""
        if self._last is None:
            return NONE
        if not self._last.sequence and not self._find():
            return FAILED
        try:
            done = self._arena.copies_settled(self._last, within)
        except CheckpointError:
            return FAILED  # the node has logged why
        return HELD if done else UNDER_WAY

    def _find(self) -> bool:
        """The last image, now that it is whole; False: it was given up."""
        assert self._last
        same = (self._last.slot, self._last.generation, self._last.step)
        for image in self._arena.found():
            if (image.slot, image.generation, image.step) == same:
                self._last = image
                return True
        return False

    def agree(self, states: Sequence[int]) -> bool:
        """What all ranks said of their last ones. Whether the next may be made."""
        if UNDER_WAY in states:
            return False
        if all(state in (HELD, NONE) for state in states) and self._last:
            self._arena.keep_for_others(self._last.sequence)
            self._held = self._last.step
        return True

    @property
    def held(self) -> int | None:
        """The newest step that all ranks have at other nodes, as far as they have said so to each other."""
        return self._held
