"""Where the items of all ranks lie in the files of a step that has the structure of the one before.

Only the coordinator writes that down, in `.metadata`. What moves from save to save is what comes behind something that is no tensor,
whose bytes may be more or fewer. Then the ranks where that is so send it their places as numbers, and it pickles the metadata again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex

from ..contents import Part
from ..ranks import Agreement
from .metadata import StorageInfo

COORDINATOR = 0
PIECE = 1 << 20  # numbers that are sent at once

MetadataWritten = Callable[[Metadata, dict[MetadataIndex, Any]], bytes]


@dataclass
class Places:
    """`mine`: begin and size of each item of this rank's, in the order of its files."""

    mine: list[int]
    # At the coordinator:
    metadata: Metadata | None
    of_ranks: list[list[tuple[str, MetadataIndex]]]  # of each rank's items: the file, and which it is
    places_of_ranks: list[list[int]]
    content: bytes  # of the metadata's file

    @property
    def last_file_room(self) -> int:
        """Bytes that suffice for the metadata of the next save."""
        return len(self.content) + len(self.content) // 4

    def describe(self, ranks: Agreement, mine: list[int], pickled: MetadataWritten) -> bytes:
        """The metadata's file, at the coordinator. Collective."""
        changed = [row[0] for row in ranks.gather([mine != self.mine])]
        self.mine = mine
        if ranks.me.rank != COORDINATOR:
            if changed[ranks.me.rank]:
                ranks.exchange([(torch.tensor(mine, dtype=torch.int64), COORDINATOR)], [], PIECE)
            return b""
        assert self.metadata
        if not any(changed):
            return self.content
        coming = {
            rank: torch.empty(len(self.places_of_ranks[rank]), dtype=torch.int64)
            for rank, has in enumerate(changed)
            if has and rank != COORDINATOR
        }
        ranks.exchange([], [(memory, rank) for rank, memory in coming.items()], PIECE)
        for rank, memory in coming.items():
            self.places_of_ranks[rank] = memory.tolist()
        self.places_of_ranks[COORDINATOR] = mine
        where: dict[MetadataIndex, Any] = {}
        for items, numbers in zip(self.of_ranks, self.places_of_ranks, strict=True):
            for i, (file, index) in enumerate(items):
                where[index] = StorageInfo(file, numbers[2 * i], numbers[2 * i + 1])
        self.content = pickled(self.metadata, where)
        return self.content


def places_of(parts: Sequence[Part]) -> list[int]:
    return [n for part in parts for n in (part.begin, part.size)]
