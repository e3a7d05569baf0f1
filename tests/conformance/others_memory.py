"""A group's images and the memory in which its nodes hold pieces of them, filled as a target fills it."""

from __future__ import annotations

import ctypes
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from troupe.checkpoint import Arena, library
from troupe.checkpoint.arena import View
from troupe.checkpoint.plan import view
from troupe.checkpoint.ranks import Rank
from troupe.checkpoint.stripes import Code, accumulate

MAGIC = 0x31636569707274


class Header(ctypes.Structure):
    """ckpt/arena/held_piece.hpp"""

    _fields_ = [
        ("magic", ctypes.c_uint64),
        ("members", ctypes.c_uint32),
        ("parity", ctypes.c_uint32),
        ("target", ctypes.c_uint32),
        ("stripe", ctypes.c_uint32),
        ("row", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32 * 16),
        ("bytes", ctypes.c_uint64 * 16),
        ("crc32", ctypes.c_uint32 * 16),
    ]


def coefficients(code: Code, row: int) -> list[int]:
    """2 to the power of member times row, in the field; 1 where a parity is a copy."""
    powers = [1]
    while len(powers) < 256:
        powers.append(powers[-1] << 1 ^ (0x11D if powers[-1] & 0x80 else 0))
    copies = code.parity == code.members - 1
    return [1 if copies else powers[row * member] for member in range(code.members)]


def parity_of(code: Code, images: Sequence[torch.Tensor], stripe: int, row: int) -> torch.Tensor:
    """As long as the longest of its pieces."""
    pieces = {}
    for member, image in enumerate(images):
        piece = code.piece_of(member, stripe)
        if piece is not None:
            begin, end = code.piece_in(image.numel(), piece)
            pieces[member] = image[begin:end]
    held = torch.zeros(max(map(len, pieces.values())), dtype=torch.uint8)
    for member, piece in pieces.items():
        accumulate(held, piece, coefficients(code, row)[member])
    return held


def hold(
    memory: Arena,
    code: Code,
    images: Sequence[torch.Tensor],
    stripe: int,
    row: int,
    *,
    step: int = 1,
    generation: int = 1,
    save: int = 0,
    ranks: Sequence[int] | None = None,
    wrong: Mapping[str, int] | None = None,
) -> None:
    """One parity more in `memory`; `wrong` replaces fields of its header."""
    parity = parity_of(code, images, stripe, row)
    ranks = ranks or range(code.members)
    header = Header(MAGIC, code.members, code.parity, (stripe + row) % code.members, stripe, row)
    for member, image in enumerate(images):
        header.ranks[member] = ranks[member]
        if code.piece_of(member, stripe) is not None:
            header.bytes[member] = image.numel()
            header.crc32[member] = zlib.crc32(bytes(image.numpy()))
    for name, value in (wrong or {}).items():
        setattr(header, name, value)
    unfinished = memory.begin(
        library.HELD_BEFORE + parity.numel(),
        step,
        generation=generation,
        save=save,
        rank=ranks[header.target],
        world_size=len(ranks),
    )
    unfinished.memory[: ctypes.sizeof(header)] = bytes(header)
    unfinished.memory[library.HELD_BEFORE :] = parity.numpy().tobytes()
    memory.finish(unfinished)


def view_of(memory: Arena) -> View:
    descriptors = library.Descriptors(*map(os.dup, memory.descriptors))
    memory = library.call("troupe_memory_view", descriptors)
    try:
        return View(library.call("troupe_arena_view", memory, 0))
    finally:
        library.load().troupe_memory_close(memory)


@dataclass(frozen=True)
class Piece:
    """As ckpt/load/load_numbers.hpp writes one."""

    generation: int
    save: int
    step: int
    code: Code
    stripe: int
    row: int
    slot: int
    sequence: int
    ranks: tuple[int, ...]
    bytes: tuple[int, ...]
    crc32: tuple[int, ...]


def pieces_seen(memory: View, world_size: int) -> list[Piece]:
    """What a rank of a world of that size sees of others' images."""
    holds, more, snapshots, steps, count, *numbers = view(
        None, memory, None, 0, Rank(world_size=world_size), world_size
    )
    assert (holds, more, snapshots, steps) == (0, 0, 0, 0)
    found = []
    for _ in range(count):
        generation, save, step, members, parity, stripe, row, slot, sequence = numbers[:9]
        each = numbers[9 : 9 + 3 * members]
        numbers = numbers[9 + 3 * members :]
        of_members = (tuple(each[i::3]) for i in range(3))
        code = Code(members, parity)
        found.append(Piece(generation, save, step, code, stripe, row, slot, sequence, *of_members))
    assert numbers == [0]  # snapshots of other worlds
    return found
