#!/usr/bin/env python3
"""What a save into memory costs the training process, and what a restore from there costs.

Everything happens in one process and in turn: the copy that memory allows (two threads that memcpy the same bytes into
memory that was touched before), ours, torch.save into /dev/shm, torch.distributed.checkpoint.async_save, of which only
the call counts, and where it is installed DLRover, in a process of its own. Nothing is written to a disk.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import dlrover_peer
import harness
from launchers import ROOT

sys.path.insert(0, str(ROOT / "python"))

THREADS = 2
LIBC = ctypes.CDLL(None)  # which lets the interpreter's lock go during a call
LIBC.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


class PlainCopy:
    """The limit: memcpy by two threads between areas that are there."""

    def __init__(self, size: int):
        self.size = size
        self.areas = [mmap.mmap(-1, size) for _ in range(2)]
        self.places = [ctypes.addressof(ctypes.c_char.from_buffer(area)) for area in self.areas]
        for place in self.places:
            ctypes.memset(place, 1, size)

    def __call__(self) -> None:
        part = self.size // THREADS
        to, source = self.places
        threads = [
            threading.Thread(target=LIBC.memcpy, args=(to + i * part, source + i * part, part))
            for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def state_of(size: int, tensors: int) -> dict:
    import torch

    generator = torch.Generator().manual_seed(1)
    return {
        f"layer {i}": torch.rand(size // 4 // tensors, generator=generator) for i in range(tensors)
    }


def touch(state: dict) -> None:
    """Reads a byte of each page, as a copy does."""
    for tensor in state.values():
        tensor[::1024].sum()


def restore(arena) -> None:
    touch(arena.load(arena.newest()))


def writers(state: dict, place: Path, figures) -> None:
    """What else saves a state: into a directory in memory."""
    import torch
    import torch.distributed.checkpoint as dcp

    figures["torch.save"].append(seconds(lambda: torch.save(state, place / "state.pt")))
    folder = place / "dcp"
    pending = []
    figures["dcp.async_save, the call"].append(
        seconds(lambda: pending.append(dcp.async_save(state, checkpoint_id=folder, no_dist=True)))
    )
    pending[0].result()
    shutil.rmtree(folder)


def peers(state: dict, place: Path, figures) -> None:
    import torch

    writers(state, place, figures)
    figures["torch.load"].append(seconds(lambda: touch(torch.load(place / "state.pt"))))


def dlrover(size: int, tensors: int) -> dlrover_peer.Peer | None:
    try:
        return dlrover_peer.Peer(size, tensors)
    except ImportError as missing:
        harness.progress(f"without DLRover ({missing}): {dlrover_peer.INSTALL}")
        return None


def ours(state: dict, arena, step: int, figures) -> None:
    figures["save"].append(seconds(lambda: arena.save(step, state)))


def first_save_and_restore(state: dict, figures) -> None:
    from troupe.checkpoint import Arena

    with Arena(threads=THREADS) as arena:
        arena.prepare(state)
        arena.wait_until_prepared()
        figures["first save, prepared"].append(seconds(lambda: arena.save(1, state)))
        figures["restore"].append(seconds(lambda: restore(arena)))


def copy_on_write(state: dict, arena, step: int, figures) -> None:
    figures["copy-on-write, the call"].append(seconds(lambda: arena.save(step, state)))
    figures["copy-on-write, all copied"].append(
        figures["copy-on-write, the call"][-1] + seconds(arena.wait)
    )


def measure(size: int, tensors: int, rounds: int) -> dict[str, list[float]]:
    from troupe.checkpoint import Arena, CheckpointError

    figures = defaultdict(list)
    state = state_of(size, tensors)
    limit = PlainCopy(size)
    try:
        watching = Arena(threads=THREADS, copy_on_write=True)
    except CheckpointError as refused:
        harness.progress(f"without copy-on-write: {refused}")
        watching = None
    flash = dlrover(size, tensors)
    with Arena(threads=THREADS) as arena, tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        for opened in filter(None, (arena, watching)):
            opened.prepare(state)
            opened.wait_until_prepared()
        for turn in range(rounds):
            harness.progress(f"{size >> 20} MiB, round {turn + 1} of {rounds}")
            figures["limit"].append(seconds(limit))
            ours(state, arena, turn + 1, figures)
            if watching:
                copy_on_write(state, watching, turn + 1, figures)
            first_save_and_restore(state, figures)
            peers(state, Path(place), figures)
            if flash:
                figures["DLRover, save to memory"].append(flash.seconds("save"))
                figures["DLRover, load from memory"].append(flash.seconds("load"))
    if flash:
        flash.close()
    if watching:
        watching.close()
    return figures


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=1024, help="of the state; default 1024"),
            p.add_argument("--tensors", type=int, default=100, help="in it; default 100"),
        ),
    )
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    figures = measure(chosen.mib << 20, chosen.tensors, chosen.rounds)
    harness.report_against_limit(
        "snapshot",
        f"{chosen.mib} MiB in {chosen.tensors} tensors, ms: median (p10 – p90) of {chosen.rounds} in turn",
        figures,
        "memcpy of as many bytes by two threads, into memory that was touched before.",
        [
            (f"save of {chosen.mib} MiB into memory", "save", "torch.save", True),
            (
                f"copy-on-write save of {chosen.mib} MiB: the call",
                "copy-on-write, the call", "dcp.async_save, the call", False,
            ),
            (f"restore of {chosen.mib} MiB from memory", "restore", "torch.load", False),
        ],  # fmt: skip
    )


if __name__ == "__main__":
    main()
