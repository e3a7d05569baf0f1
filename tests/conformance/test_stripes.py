"""Pieces of images at other nodes: what Python sees of them, and what an arena does for them."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import zlib

import pytest
import torch
from others_memory import hold, parity_of, pieces_seen, view_of

from troupe.checkpoint import Arena, CheckpointError, library
from troupe.checkpoint.stripes import Code, Group, accumulate, crc32


def some_images(code: Code, seed: int = 1) -> list[torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    sizes = [1000, 0, 4097, 63, 1, 64]
    return [
        torch.randint(0, 256, (sizes[i],), dtype=torch.uint8, generator=chance)
        for i in range(code.members)
    ]


def a_pair(**changed: object) -> Group:
    values = {"code": Code(2, 1), "me": 0, "ranks": [0, 1], "addresses": ["n0:1", "n1:1"]}
    return Group(**{**values, **changed})


def test_what_cannot_be_is_none():
    assert Code(9, 4).target(0, 0) is None
    assert Code(3, 1).target(3, 0) is None and Code(3, 1).target(0, 1) is None
    assert Code(3, 1).piece_of(3, 0) is None and Code(3, 1).piece_of(0, 3) is None
    assert Code(1, 1).piece_bytes(100) == 0


def test_checksums_are_those_of_everybody():
    memory = some_images(Code(3, 1))[2]
    assert crc32(memory) == zlib.crc32(bytes(memory.numpy()))
    assert crc32(memory[:0]) == 0


@pytest.mark.parametrize(
    "into, part",
    [
        (torch.zeros(4), torch.zeros(4, dtype=torch.uint8)),
        (torch.zeros(8, dtype=torch.uint8)[::2], torch.zeros(4, dtype=torch.uint8)),
        (torch.zeros(3, dtype=torch.uint8), torch.zeros(4, dtype=torch.uint8)),
    ],
)
def test_sums_of_what_is_no_memory_for_them_are_refused(into, part):
    with pytest.raises(ValueError):
        accumulate(into, part, 1)


def test_what_a_node_holds_is_seen_and_what_is_none_is_not():
    code, memory = Code(3, 1), Arena(images=4)
    images = some_images(code)
    hold(memory, code, images, 2, 0, step=7, generation=3, ranks=[4, 6, 8])
    with view_of(memory) as seen:
        [piece] = pieces_seen(seen, 3)
        assert (piece.generation, piece.save, piece.step) == (3, 0, 7)
        assert (piece.code, piece.stripe, piece.row) == (code, 2, 0)
        assert piece.ranks == (4, 6, 8)
        assert piece.bytes == (1000, 0, 0)  # the third holds the parity
        assert piece.crc32[0] == zlib.crc32(bytes(images[0].numpy()))
        [image] = [i for i in seen.found() if (i.slot, i.sequence) == (piece.slot, piece.sequence)]
        mapped = mmap.mmap(image.descriptor, image.bytes, prot=mmap.PROT_READ)
        expected = parity_of(code, images, 2, 0).numpy().tobytes()
        assert mapped[library.HELD_BEFORE :] == expected
        mapped.close()
        assert pieces_seen(seen, 4) == []  # of a world of another size
        # What comes after the memory was mapped is seen as well, in slots that had none then.
        hold(memory, code, images, 1, 0, step=8)
        assert [piece.step for piece in pieces_seen(seen, 3)] == [8, 7]
    memory.close()


@pytest.mark.parametrize(
    "wrong",
    [{"magic": 1}, {"members": 17}, {"parity": 3}, {"row": 1}, {"stripe": 3}, {"target": 1}],
    ids=str,
)
def test_a_header_that_cannot_be_is_no_piece(wrong):
    code, memory = Code(3, 1), Arena()
    hold(memory, code, some_images(code), 2, 0, wrong=wrong)
    with view_of(memory) as seen:
        assert seen.found() and pieces_seen(seen, 3) == []
    memory.close()


def test_a_piece_shorter_than_its_images_want_is_none():
    code, memory = Code(2, 1), Arena()
    images = some_images(code)
    hold(memory, code, images, 1, 0)
    raw = memory.begin(library.HELD_BEFORE + 999, 2)
    source = memory.newest()
    with open(source.path, "rb") as file:
        raw.memory[:] = file.read(library.HELD_BEFORE + 999)
    memory.finish(raw)
    with view_of(memory) as seen:
        assert [piece.step for piece in pieces_seen(seen, 2)] == [1]
    memory.close()


# ---- what an arena does


def rung(arena: Arena) -> bool:
    return bool(select.select([arena.descriptors[-1]], [], [], 0)[0])


@pytest.mark.parametrize("copy_on_write", [False, True])
def test_an_image_of_which_copies_are_wanted_stays(copy_on_write):
    try:
        arena = Arena(copy_on_write=copy_on_write)
    except CheckpointError as error:
        pytest.skip(str(error))
    with arena:
        state = {"x": torch.arange(100_000)}
        with pytest.raises(CheckpointError, match="nothing was saved"):
            arena.want_copies(a_pair())
        arena.save(1, state)
        assert not rung(arena)
        slot = arena.want_copies(a_pair())
        assert rung(arena)
        arena.wait()
        [image] = arena.found()
        assert (image.slot, image.step) == (slot, 1)
        assert arena.copies_settled(image, 0) is False
        for step in range(2, 12):
            arena.save(step, state)
        arena.wait()
        assert image in arena.found()
        with pytest.raises(CheckpointError, match=f"slot {slot} are being made already"):
            arena.want_copies(a_pair(), image)
        newest = arena.newest()
        assert arena.want_copies(a_pair(me=1), newest) == newest.slot


def test_what_becomes_whole_after_copies_were_wanted_is_told():
    with Arena() as arena:
        unfinished = arena.begin(10, 1)
        slot = ctypes.c_uint64(unfinished.raw.slot)
        library.call("troupe_request_copies", arena.handle, ctypes.byref(slot), a_pair().raw())
        os.read(arena.descriptors[-1], 8)
        assert not rung(arena)
        arena.finish(unfinished)
        assert rung(arena)


def test_a_group_that_cannot_be_is_refused():
    with Arena() as arena:
        arena.save(1, {})
        for group, why in [
            (a_pair(code=Code(2, 2)), "2 parities in a group of 2: there can be 1"),
            (a_pair(me=2), "member 2 of a group of 2"),
            (a_pair(ranks=[0]), "a group of 2 has 1 ranks and 2 addresses"),
            (a_pair(addresses=["n0:1", ""]), "rank 1's node has 1 to 127 bytes, not 0"),
            (a_pair(addresses=["n" * 128, "n1:1"]), "rank 0's node has 1 to 127 bytes, not 128"),
        ]:
            with pytest.raises(CheckpointError, match=why):
                arena.want_copies(group)
        arena.want_copies(a_pair(addresses=["n" * 127, "n1:1"]))


def test_only_the_last_save_is_the_last_save():
    with Arena() as arena:
        arena.save(1, {})
        unfinished = arena.begin(10, 2)
        with pytest.raises(CheckpointError, match="nothing was saved"):
            arena.want_copies(a_pair())
        arena.abandon(unfinished)


def test_an_image_stays_for_others_until_another_does():
    with Arena() as arena:
        arena.save(1, {})
        first = arena.newest()
        arena.keep_for_others(first)
        for step in range(2, 8):
            arena.save(step, {})
        assert first in arena.found()
        newest = arena.newest()
        arena.keep_for_others(newest)
        for step in range(8, 12):
            arena.save(step, {})
        assert first not in arena.found()
        assert newest in arena.found()
        with pytest.raises(CheckpointError, match="no image here has the sequence 1"):
            arena.keep_for_others(first)
        arena.keep_for_others(None)
        for step in range(12, 16):
            arena.save(step, {})
        assert newest not in arena.found()


def test_another_processs_memory_is_only_seen():
    with Arena() as arena:
        arena.save(1, {})
        with view_of(arena) as seen:
            image = seen.newest()
            for refused in (
                lambda: Arena.want_copies(seen, a_pair(), image),
                lambda: Arena.keep_for_others(seen, image),
            ):
                with pytest.raises(CheckpointError, match="another process's"):
                    refused()
