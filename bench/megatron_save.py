#!/usr/bin/env python3
"""What a save of Megatron's costs training, next to Megatron's own saves of the same state, synchronous and asynchronous.

One process with a GPT of Megatron's, bfloat16, and its distributed optimizer with AdamW: main parameters and two moments in float32.
Everything happens in turn: the copy that memory allows (two threads that memcpy as many bytes), ours into memory, Megatron's own into
/dev/shm, each a whole `save_checkpoint` with all that Megatron does itself. Of an asynchronous save that is the call alone, as training
sees it; the file is waited for before the next turn. Runs in the environment that `./x megatron` makes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import harness
from framework_saves import be_alone, runs_with, saved_bytes
from launchers import ROOT
from snapshot import PlainCopy, seconds

OWN = ROOT / "build/megatron-venv/bin/python"


def training_of(size: int, layers: int, fmt: str, place: str) -> Any:
    import torch

    sys.path.insert(0, str(ROOT / "tests/megatron"))
    from tiny_gpt import Training

    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    # A layer has 12 times the square of its width parameters, each of 2 + 3 * 4 bytes.
    width = int((size / 14 / 12 / layers) ** 0.5) // 16 * 16
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
        made = Training(place, 1, True, hidden=width, layers=layers, ckpt_format=fmt)
        made.train(1)
    return made


def measure(size: int, layers: int, fmt: str, rounds: int) -> tuple[int, dict[str, list[float]]]:
    from megatron.training import async_utils, checkpointing

    from troupe.checkpoint.megatron import StorageType, close, save_checkpoint

    figures = defaultdict(list)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        theirs, where = Path(place) / "theirs", Path(place) / "ours"
        training = training_of(size, layers, fmt, str(where))
        args, context, theirs_context = training.args, {}, {}  # of a whole job, as Megatron's own training has one

        def save(step: int) -> None:
            args.save, args.async_save = str(where), False
            assert save_checkpoint(step, *training.everything, 0, checkpointing_context=context, storage_type=StorageType.MEMORY)

        def save_theirs(step: int, behind: bool = False) -> None:
            args.save, args.async_save = str(theirs), behind
            checkpointing.save_checkpoint(step, *training.everything, 0, checkpointing_context=theirs_context)

        with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
            save_theirs(1)
            size = saved_bytes(theirs)
            limit = PlainCopy(size)
            figures["first save"].append(seconds(lambda: save(2)))
            save(3)  # each of two images has its memory then
            for turn in range(1, rounds + 1):
                harness.progress(f"{fmt}, {size >> 20} MiB, round {turn} of {rounds}")
                figures["limit"].append(seconds(limit))
                figures["save"].append(seconds(lambda t=turn: save(3 + t)))
                figures["Megatron's own"].append(seconds(lambda t=turn: save_theirs(t)))
                shutil.rmtree(theirs)
                if fmt == "torch_dist":  # there is no other format with asynchronous saves
                    figures["Megatron's asynchronous"].append(seconds(lambda t=turn: save_theirs(t, True)))
                    async_utils.maybe_finalize_async_save(blocking=True)
                    shutil.rmtree(theirs)
            args.save = str(where)
            close()
    return size, figures


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=1024, help="of the state, about; default 1024"),
            p.add_argument("--layers", type=int, default=8, help="of the model; default 8"),
            p.add_argument("--format", choices=["torch", "torch_dist"], default="torch_dist", help="default torch_dist"),
        ),
    )
    if not runs_with("megatron", OWN, "./x megatron 1 does that"):
        return
    logging.disable(logging.WARNING)
    be_alone()
    size, figures = measure(chosen.mib << 20, chosen.layers, chosen.format, chosen.rounds)
    rows = [(f"save of {size >> 20} MiB of Megatron's, {chosen.format}", "save", "Megatron's own", True)]
    harness.report_against_limit(
        "megatron_save",
        f"{size >> 20} MiB of {chosen.layers} layers, {chosen.format}, ms: median (p10 – p90) of {chosen.rounds} in turn",
        figures,
        "memcpy of as many bytes by two threads, into memory that was touched before.",
        rows,
    )


if __name__ == "__main__":
    main()
