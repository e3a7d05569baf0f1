"""Images that are lost, summed again from what other nodes hold of them. The native library plans it; here it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from .arena import View
from .image import Image, Unfinished
from .library import CheckpointError
from .moving import memory_of
from .plan import Plan, Transfer
from .ranks import Agreement
from .stripes import accumulate, crc32

PIECE = 64 << 20  # bytes that are sent at once


def rebuild(
    ranks: Agreement,
    what: Plan,
    own: Callable[[int], Image | None],
    others: View | None,
    into: Unfinished | None,
) -> str:
    """All ranks call it. `own`: this rank's image of that state, of a rank's part; `into`: the memory of one that is lost. Returns
    why what was summed is not what was saved, or nothing.

    Raises CheckpointError if the ranks lose each other.
    """
    me, reason = ranks.me.rank, ""
    lost = next((one for one in what.rebuilt if one.rank == me), None)
    sources: dict[tuple[int, int] | int, torch.Tensor] = {}
    try:
        for which in {_key(t) for t in what.transfers if t.source == me}:
            image = own(which) if isinstance(which, int) else _parity(which, others)
            sources[which] = memory_of(image)
    except (CheckpointError, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    ranks.require(reason)
    memory = torch.empty(0, dtype=torch.uint8)
    if into and lost and lost.bytes:
        memory = torch.frombuffer(into.memory, dtype=torch.uint8).zero_()
    for transfer in what.transfers:
        _carry(ranks, transfer, sources, memory)
    if lost and crc32(memory) != lost.crc32:
        return f"step {what.what.step} from pieces at other nodes is damaged"
    return ""


def _key(transfer: Transfer) -> tuple[int, int] | int:
    """What the source has: a parity, or a rank's part."""
    return transfer.of if transfer.parity is None else transfer.parity


def _parity(number: tuple[int, int], others: View | None) -> Image | None:
    for image in others.found() if others else []:
        if (image.slot, image.sequence) == number:
            return image
    return None


def _carry(
    ranks: Agreement,
    transfer: Transfer,
    sources: dict[tuple[int, int] | int, torch.Tensor],
    memory: torch.Tensor,
) -> None:
    me = ranks.me.rank
    if me not in (transfer.source, transfer.to):
        return
    for begin, size in _parts(transfer):
        if me == transfer.source:
            part = sources[_key(transfer)][begin : begin + size]
        else:
            part = torch.empty(size, dtype=torch.uint8)
        if transfer.source != transfer.to:
            ranks.pass_on(part, transfer.source, transfer.to)
        if me == transfer.to:
            at = transfer.into + begin - transfer.begin
            accumulate(memory[at : at + size], part, transfer.times)


def _parts(transfer: Transfer) -> Iterator[tuple[int, int]]:
    for begin in range(transfer.begin, transfer.end, PIECE):
        yield begin, min(PIECE, transfer.end - begin)


