"""A save of a state with the structure of the one before: without a plan, and without a pickle sent or made.

dcp.save makes the plan of all items, sends it to the coordinator and back, sends the place of each item, pickles the
metadata and sends that: half a second and more for ten thousand tensors, while memory takes a tenth of that for their
content. If no rank's structure has changed, all that is known, but for the places of what is no tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType
from torch.distributed.checkpoint.utils import find_tensor_shard

from ..contents import Part
from ..skeleton import without_collector
from .archives import PLAIN, Archives
from .places import Places, places_of
from .shape import numbered, walked
from .unchanged import written


@dataclass
class Repeated:
    """What is known of a save when it is over."""

    shape: list[Any]
    file: str
    items: list[WriteItem]  # in the order of the file
    at: list[int]  # of each item, among the values of the state
    places: Places

    @classmethod
    def of(
        cls,
        planner: DefaultSavePlanner,
        state: Any,
        values: int,
        shape: list[Any],
        file: str,
        items: list[WriteItem],
        of_ranks: list[list[tuple[str, MetadataIndex]]],
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
            [n for _, index in each for n in (where[index].offset, where[index].length)] for each in of_ranks
        ]
        return cls(shape, file, items, at, Places(places_of(parts), metadata, of_ranks, places_of_ranks, content))

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


def same_structure(state: Any, kept: Repeated | None) -> tuple[list[Any], list[Any], bool]:
    """Values and structure of a state, and whether it is that of the save that is `kept`."""
    values, shape = walked(state)
    return values, shape, kept is not None and shape == kept.shape
