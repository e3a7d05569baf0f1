"""How images of a group of ranks are kept at each other's nodes: ckpt/erasure/stripes.hpp."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from . import library


@dataclass(frozen=True)
class Code:
    """A group of so many, of which `parity` may be lost."""

    members: int
    parity: int

    @property
    def pieces(self) -> int:
        """Into which an image is cut."""
        return self.members - self.parity

    def piece_bytes(self, image_bytes: int) -> int:
        """Of each piece of an image; the last may be shorter."""
        return library.load().troupe_piece_bytes(self.members, self.parity, image_bytes)

    def piece_in(self, image_bytes: int, piece: int) -> tuple[int, int]:
        """Where a piece begins and ends in an image; it may be nothing."""
        each = self.piece_bytes(image_bytes)
        return min(piece * each, image_bytes), min((piece + 1) * each, image_bytes)

    def piece_of(self, member: int, stripe: int) -> int | None:
        """Which piece of its image a member gives to a stripe; None if it holds a parity of it."""
        piece = library.load().troupe_piece_of(self.members, self.parity, member, stripe)
        return piece if piece >= 0 else None

    def target(self, stripe: int, row: int) -> int | None:
        """Which member holds a parity."""
        member = library.load().troupe_target(self.members, self.parity, stripe, row)
        return member if member >= 0 else None


@dataclass(frozen=True)
class Group:
    """Ranks that keep copies of each other's images, at their nodes' addresses ("host:port"), this one the `me`th of them.

    Copies are to be made within `within` seconds.
    """

    code: Code
    me: int
    ranks: Sequence[int]
    addresses: Sequence[str]
    within: float = 600

    def raw(self) -> library.RawGroup:
        members = self.code.members
        if not len(self.ranks) == len(self.addresses) == members:
            raise library.CheckpointError(
                f"a group of {members} has {len(self.ranks)} ranks and {len(self.addresses)} addresses"
            )
        return library.RawGroup(
            members,
            self.code.parity,
            self.me,
            (ctypes.c_uint32 * members)(*self.ranks),
            (ctypes.c_char_p * members)(*[address.encode() for address in self.addresses]),
            round(self.within * 1000),
        )


def accumulate(into: torch.Tensor, part: torch.Tensor, times: int) -> None:
    """Adds `times` the bytes of `part` to those of `into`, of which there are at least as many."""
    for one in (into, part):
        if one.dtype != torch.uint8 or not one.is_contiguous() or one.device.type != "cpu":
            raise ValueError("sums are of contiguous bytes in main memory")
    if part.numel() > into.numel():
        raise ValueError(f"{part.numel()} bytes do not fit into {into.numel()}")
    library.load().troupe_accumulate(into.data_ptr(), part.data_ptr(), part.numel(), times)


def crc32(memory: torch.Tensor) -> int:
    """Of contiguous bytes."""
    return library.load().troupe_crc32(0, memory.data_ptr(), memory.numel())
