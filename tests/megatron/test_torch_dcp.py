"""Megatron's format torch_dcp: PyTorch's FSDP2 in Megatron, with its own save and load beside ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch.distributed as dist
from few_ranks import Job, said
from test_files import MEMORY, save_by_megatron, write_from_memory

from troupe.checkpoint import megatron as ours

STEPS = 3


def made(place: Path, chained: bool = False) -> Any:
    from sharded_gpt import ShardedTraining

    return ShardedTraining(str(place), chained)


def saves(rank: int, place: Path) -> str:
    """By Megatron to the disk, and by Troupe into memory."""
    training = made(place / "theirs")
    training.train(STEPS)
    save_by_megatron(training, STEPS, 30)
    training.args.save = str(place / "memory")
    assert ours.save_checkpoint(STEPS, *training.everything, 30, storage_type=MEMORY)
    write_from_memory(place / "memory", STEPS, place / "ours")
    return training.digest()


def loads(rank: int, place: Path, by: str) -> dict[str, Any]:
    from megatron.training import checkpointing

    training = made(place)
    before = training.digest()
    found = (ours if by == "ours" else checkpointing).load_checkpoint(*training.everything)
    training.step = found[0]
    loaded = training.digest()
    training.train(STEPS + 2)
    return {"found": found, "anew": before, "loaded": loaded, "after": training.digest(), "told": list(said.lines)}


def test_torch_dcp_is_loaded_with_the_bits_that_megatrons_own_load_gives(tmp_path: Path):
    job = Job(tmp_path, [2])
    digests = job.run(saves, tmp_path)
    assert os.listdir(tmp_path / "memory") == []
    theirs = job.run(loads, tmp_path / "theirs", "theirs")
    for one, digest in zip(theirs, digests, strict=True):
        assert (one["found"], one["loaded"]) == ((STEPS, 30), digest) and one["anew"] != digest
    names = {path.name for path in (tmp_path / "theirs/iter_0000003").iterdir()}
    assert names == {path.name for path in (tmp_path / "ours/iter_0000003").iterdir()}
    from_memory = job.run(loads, tmp_path / "memory", "ours")
    assert f"step {STEPS} comes from memory" in from_memory[0]["told"][0]
    by_megatron, from_disk = job.run(loads, tmp_path / "ours", "theirs"), job.run(loads, tmp_path / "theirs", "ours")
    job.close()
    for found in (from_memory, by_megatron, from_disk):
        for one, other in zip(found, theirs, strict=True):
            assert all(one[what] == other[what] for what in ("found", "loaded", "after"))


def loads_chained(rank: int, place: Path) -> list[str]:
    from megatron.training import checkpointing

    training, told = made(place, chained=True), []
    training.train(1)
    save_by_megatron(training, 1)
    for load in (checkpointing.load_checkpoint, ours.load_checkpoint):
        try:
            load(*training.everything)
        except Exception as error:
            told.append(f"{type(error).__name__}: {error}")
        dist.barrier()
    return told


def test_what_megatron_itself_cannot_load_in_torch_dcp_is_said(tmp_path: Path):
    job, place = Job(tmp_path, [1]), tmp_path / "c"
    [(theirs, told)] = job.run(loads_chained, place)
    job.close()
    why = "TypeError: ChainedOptimizer.state_dict() got an unexpected keyword argument 'is_loading'"
    assert theirs == why
    assert told == f"CheckpointError: rank 0: {place}/iter_0000001 of step 1: it could not be loaded: {why}"
