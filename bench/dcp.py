#!/usr/bin/env python3
"""What a save of torch.distributed.checkpoint costs the training process, into a snapshot and into PyTorch's own files.

One process, in turn: the copy that memory allows; our `save`, which plans nothing twice; dcp.save and dcp.async_save into a
snapshot; and the peers, dcp.save and the call of dcp.async_save with PyTorch's FileSystemWriter, into /dev/shm and without
fsync. PyTorch's cache of plans is on for all.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import harness
from launchers import ROOT
from snapshot import THREADS, PlainCopy, seconds, state_of

sys.path.insert(0, str(ROOT / "python"))

COUNTS = (16, 10_000)  # tensors


def measure(size: int, tensors: int, rounds: int) -> dict[str, list[float]]:
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter
    from troupe.checkpoint import StorageType
    from troupe.checkpoint.dcp import DcpCheckpointer

    figures = defaultdict(list)
    state = {"model": state_of(size, tensors), "step": 1}
    limit, planner = PlainCopy(size), DefaultSavePlanner(enable_plan_caching=True)
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
        DcpCheckpointer(Path(place) / "ours") as checkpointer,
    ):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        checkpointer.prepare(state)
        folder = Path(place) / "theirs"

        def ours(step: int) -> None:
            assert checkpointer.save(step, state, storage_type=StorageType.MEMORY)

        def by_dcp(step: int) -> None:
            writer = checkpointer.get_storage_writer(step, StorageType.MEMORY)
            dcp.save(state, storage_writer=writer, planner=planner)

        def by_async(step: int) -> object:
            writer = checkpointer.get_storage_writer(step, StorageType.MEMORY)
            return dcp.async_save(state, storage_writer=writer, planner=planner)

        def theirs() -> None:
            dcp.save(state, storage_writer=FileSystemWriter(folder, sync_files=False), planner=planner)

        def their_async() -> object:
            writer = FileSystemWriter(folder, sync_files=False)
            return dcp.async_save(state, storage_writer=writer, planner=planner)

        def timed(name: str, what, *step: int) -> None:
            pending: list = []
            figures[name].append(seconds(lambda: pending.append(what(*step))))
            if pending[0] is not None:
                pending[0].result()

        for warm in (1, 2):
            ours(warm)
        for turn in range(rounds):
            harness.progress(f"{size >> 20} MiB in {tensors} tensors, round {turn + 1} of {rounds}")
            figures["limit"].append(seconds(limit))
            timed("save", ours, 3 * turn + 3)
            timed("dcp.save into a snapshot", by_dcp, 3 * turn + 4)
            timed("dcp.async_save into a snapshot, the call", by_async, 3 * turn + 5)
            timed("dcp.save, FileSystemWriter", theirs)
            timed("dcp.async_save, FileSystemWriter, the call", their_async)
            shutil.rmtree(folder)
        dist.destroy_process_group()
    return figures


def shown(size: int, tensors: int) -> list[harness.Shown]:
    of = f"{tensors:,} tensors, {size >> 20} MiB"
    theirs = "dcp.save, FileSystemWriter"
    return [
        (f"save of {of}, by torch.distributed.checkpoint's plan", "save", theirs, True),
        (f"dcp.save of {of}", "dcp.save into a snapshot", theirs, True),
        (
            f"dcp.async_save of {of}: the call",
            "dcp.async_save into a snapshot, the call", "dcp.async_save, FileSystemWriter, the call", False,
        ),
    ]  # fmt: skip


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=1024, help="of the state; default 1024"),
            p.add_argument("--tensors", type=int, nargs="+", default=COUNTS, help="in it, one state after the other; default 16 10000"),
        ),
    )
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    size = chosen.mib << 20
    found: dict[str, harness.Summary] = {}
    rows, figures = [], []
    for tensors in chosen.tensors:
        seconds = measure(size, tensors, chosen.rounds)
        part = harness.against_limit(seconds, shown(size, tensors), f"{tensors:,} tensors: ")
        found |= part[0]
        rows += part[1]
        figures += part[2]
    harness.report(
        "dcp",
        f"{chosen.mib} MiB, ms: median (p10 – p90) of {chosen.rounds} in turn",
        ["", "ms", "× limit"],
        rows,
        dict(found),
        ["limit: memcpy of as many bytes by two threads, into memory that was touched before."],
        figures,
    )


if __name__ == "__main__":
    main()
