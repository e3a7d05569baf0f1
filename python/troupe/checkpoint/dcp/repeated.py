"""A save of a state with the structure of the one before: without a plan, and without a pickle sent or made.

dcp.save makes the plan of all items, sends it to the coordinator and back, sends the place of each item, pickles the
metadata and sends that: half a second and more for ten thousand tensors, while memory takes a tenth of that for their
content. If no rank's structure has changed, all that is known, but for the places of what is no tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType
from torch.distributed.checkpoint.utils import find_tensor_shard

from ..contents import Part
from ..ranks import Agreement
from ..skeleton import without_collector
from .archives import PLAIN, Archives
from .metadata import StorageInfo
from .shape import numbered, walked
from .unchanged import written

COORDINATOR = 0
PIECE = 1 << 20  # numbers that are sent at once

MetadataWritten = Callable[[Metadata, dict[MetadataIndex, Any]], bytes]


@dataclass
class Repeated:
    """What is known of a save when it is over."""

    shape: list[Any]
    file: str
    items: list[WriteItem]  # in the order of the file
    at: list[int]  # of each item, among the values of the state
    places: list[int]  # begin and size of each item in the file
    # At the coordinator:
    metadata: Metadata | None
    of_ranks: list[tuple[str, list[WriteItem]]]  # file and items
    places_of_ranks: list[list[int]]
    content: bytes  # of the metadata's file

    @classmethod
    def of(
        cls,
        planner: DefaultSavePlanner,
        state: Any,
        values: int,
        shape: list[Any],
        file: str,
        items: list[WriteItem],
        of_ranks: list[tuple[str, list[WriteItem]]],
        parts: Sequence[Part],
        content: bytes,
    ) -> Repeated | None:
        """After a dcp.save of a state of so many `values`; None if two values of the state have one path."""
        number = numbered(state)
        if len(number) != values:
            return None
        at = [number[planner.mappings[item.index.fqn]] for item in items]
        metadata = planner.metadata if of_ranks else None
        where = metadata.storage_data if metadata else {}
        places_of_ranks = [
            [n for item in each for n in (where[item.index].offset, where[item.index].length)]
            for _, each in of_ranks
        ]
        return cls(
            shape, file, items, at, places_of(parts), metadata, of_ranks, places_of_ranks, content
        )

    def parts(self, values: Sequence[Any], archives: Archives) -> list[Part]:
        """Of the file, as `SnapshotWriter` makes them. Raises what pickle raises."""
        made = []
        with torch.no_grad(), without_collector():
            for item, at in zip(self.items, self.at, strict=True):
                value = values[at]
                if item.type is WriteItemType.BYTE_IO:
                    made.append(Part(written(value)))
                elif type(value) in PLAIN:
                    made.append(archives.part(value))
                else:
                    made.append(archives.part(find_tensor_shard(value, item.index)))
        return made

    def describe(self, ranks: Agreement, places: list[int], pickled: MetadataWritten) -> bytes:
        """The metadata's file, at the coordinator. Collective: ranks tell it places that have changed, as numbers."""
        changed = [row[0] for row in ranks.gather([places != self.places])]
        self.places = places
        if ranks.me.rank != COORDINATOR:
            if changed[ranks.me.rank]:
                ranks.exchange([(torch.tensor(places, dtype=torch.int64), COORDINATOR)], [], PIECE)
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
        self.places_of_ranks[COORDINATOR] = places
        where: dict[MetadataIndex, Any] = {}
        for (file, items), numbers in zip(self.of_ranks, self.places_of_ranks, strict=True):
            for i, item in enumerate(items):
                where[item.index] = StorageInfo(file, numbers[2 * i], numbers[2 * i + 1])
        self.content = pickled(self.metadata, where)
        return self.content


def places_of(parts: Sequence[Part]) -> list[int]:
    return [n for part in parts for n in (part.begin, part.size)]


def same_structure(state: Any, kept: Repeated | None) -> tuple[list[Any], list[Any], bool]:
    """Values and structure of a state, and whether it is that of the save that is `kept`."""
    values, shape = walked(state)
    return values, shape, kept is not None and shape == kept.shape
