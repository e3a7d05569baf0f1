"""Images of ranks that have moved: each goes from the node that had the rank before to the one that has it now."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import torch

from .image import Image, Unfinished
from .library import CheckpointError
from .plan import Plan
from .ranks import Agreement
from .stripes import crc32

PIECE = 64 << 20  # bytes that are sent at once


def move(
    ranks: Agreement, what: Plan, own: Callable[[int], Image | None], into: Unfinished | None
) -> str:
    """All ranks call it. `own`: this rank's image of that state, of a rank's part; `into`: memory for the part of this one, if
    it is to come. All go at once, so that ranks in a ring do not wait for each other. Returns why what came is not what was sent.

    Raises CheckpointError at all ranks if one cannot send.
    """
    me, reason = ranks.me.rank, ""
    outgoing: list[tuple[torch.Tensor, int]] = []
    try:
        outgoing = [(memory_of(own(one.to)), one.to) for one in what.moves if one.source == me]
    except (CheckpointError, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    ranks.require(reason)
    coming = next((one for one in what.moves if one.to == me), None)
    memory, told = torch.empty(0, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64)
    incoming: list[tuple[torch.Tensor, int]] = []
    if into and coming:
        memory = torch.frombuffer(into.memory, dtype=torch.uint8)
        incoming = [(memory, coming.source)]
    ranks.exchange(outgoing, incoming, PIECE)
    sums = [(torch.tensor([crc32(part)]), to) for part, to in outgoing]
    ranks.exchange(sums, [(told, source) for _, source in incoming], PIECE)
    if coming and crc32(memory) != told.item():
        return f"step {what.what.step} came damaged from rank {coming.source}"
    return ""


def memory_of(image: Image | None) -> torch.Tensor:
    """The bytes of an image, to be read. Raises CheckpointError if it is none, OSError and ValueError if it cannot be mapped."""
    if image is None:
        raise CheckpointError("what this rank was to send is not in memory any more")
    # Of one's own, since torch asks for memory that can be written to.
    mapped = mmap.mmap(image.descriptor, image.bytes, flags=mmap.MAP_PRIVATE)
    return torch.frombuffer(mapped, dtype=torch.uint8)
