#!/usr/bin/env python3
"""What a save of a DeepSpeed engine costs training, next to DeepSpeed's own save of the same state.

One process with ZeRO stage 1 and AdamW in float32: parameters, their partition, two moments. Everything happens in turn: the copy
that memory allows (two threads that memcpy as many bytes), ours into memory, DeepSpeed's own into /dev/shm, each a whole
`save_checkpoint` with all that DeepSpeed does itself. Runs in the environment that `./x deepspeed` makes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import harness
from framework_saves import be_alone, deepspeed_engine, runs_with, saved_bytes
from launchers import ROOT
from snapshot import PlainCopy, seconds

OWN = ROOT / "build/deepspeed-venv/bin/python"


def measure(size: int, tensors: int, rounds: int) -> tuple[int, dict[str, list[float]]]:
    from troupe.checkpoint import StorageType
    from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

    figures = defaultdict(list)
    engine = deepspeed_engine(size, tensors)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        theirs = Path(place) / "theirs"
        engine.save_checkpoint(str(theirs), "global_step0")
        size = saved_bytes(theirs / "global_step0")
        shutil.rmtree(theirs)
        limit = PlainCopy(size)
        where = Path(place) / "ours"
        with DeepSpeedCheckpointer(engine, where) as ours:

            def save(step: int) -> None:
                assert ours.save_checkpoint(where, step, storage_type=StorageType.MEMORY)

            def save_theirs(step: int) -> None:  # another directory than the checkpointer's
                engine.save_checkpoint(str(theirs), f"global_step{step}")

            figures["first save"].append(seconds(lambda: save(0)))
            save(1)  # each of two images has its memory then
            for turn in range(1, rounds + 1):
                harness.progress(f"{size >> 20} MiB in {tensors} parameters, round {turn} of {rounds}")
                figures["limit"].append(seconds(limit))
                figures["save"].append(seconds(lambda t=turn: save(1 + t)))
                figures["DeepSpeed's own"].append(seconds(lambda t=turn: save_theirs(t)))
                shutil.rmtree(theirs)
    return size, figures


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=1024, help="of the state; default 1024"),
            p.add_argument("--tensors", type=int, default=100, help="parameters; default 100"),
        ),
    )
    if not runs_with("deepspeed", OWN, "./x deepspeed 1 does that"):
        return
    be_alone()
    size, figures = measure(chosen.mib << 20, chosen.tensors, chosen.rounds)
    harness.report_against_limit(
        "deepspeed_save",
        f"{size >> 20} MiB of {chosen.tensors} parameters, ms: median (p10 – p90) of {chosen.rounds} in turn",
        figures,
        "memcpy of as many bytes by two threads, into memory that was touched before.",
        [(f"save of {size >> 20} MiB of a DeepSpeed engine", "save", "DeepSpeed's own", True)],
    )


if __name__ == "__main__":
    main()
