"""Megatron-LM itself on CPUs: its saves in memory, its loads from there, and files as it writes them."""

from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from few_ranks import Job, said

from troupe.checkpoint import StorageType
from troupe.checkpoint import megatron as ours

MEMORY = StorageType.MEMORY
FORMATS = ["torch", "torch_dist"]
How = tuple[str, int, bool]  # format, tensor parallel size, distributed optimizer
HOWS = pytest.mark.parametrize(
    "how", [("torch", 2, False), ("torch_dist", 2, False), ("torch", 1, True), ("torch_dist", 1, True), ("torch_dist", 2, True)], ids=str
)


def made(place: Path, how: How, **more: Any) -> Any:
    from tiny_gpt import Training

    return Training(str(place), how[1], how[2], ckpt_format=how[0], **more)


def save_by_megatron(training: Any, step: int, flops: int = 0) -> None:
    from megatron.training import checkpointing
    from tiny_gpt import end_writer

    checkpointing.save_checkpoint(step, *training.everything, flops)
    dist.barrier()
    end_writer()


def same(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two states differ."""
    if isinstance(one, torch.Tensor):
        return [] if torch.equal(one, other) and one.dtype == other.dtype else [where]
    if isinstance(one, dict):
        if set(one) != set(other):
            return [f"{where}: {list(one)} {list(other)}"]
        return [d for key in one for d in same(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, (list, tuple)):
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in same(a, b, f"{where}.{i}")]
    if isinstance(one, io.BytesIO):
        return [] if one.getvalue() == other.getvalue() else [where]
    if hasattr(one, "__dict__") and not isinstance(one, type):
        return same(vars(one), vars(other), where)
    if isinstance(one, bytes) or not hasattr(one, "tobytes"):
        return [] if one == other else [f"{where}: {one} {other}"]
    return [] if one.tobytes() == other.tobytes() else [where]


# ---- As Megatron's own ----


def patched() -> list[Any]:
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy
    from megatron.training import checkpointing

    ends = (checkpointing.ensure_directory_exists, checkpointing.get_checkpoint_tracker_filename, checkpointing.print_rank_0)
    return [
        *(torch.save, torch.load, dist_checkpointing.save, dist.checkpoint.FileSystemWriter, *ends),
        *(TorchDistSaveShardedStrategy._get_save_and_finalize_callbacks, dist.checkpoint.FileSystemReader.read_data),
    ]


def write_from_memory(place: Path, step: int, to: Path) -> list[str]:
    """What this rank has of a step, as a launcher would write it; and the tracker. The files' names."""
    from troupe.checkpoint.megatron.checkpointer import _checkpointers

    files = _checkpointers[str(place)][0].load_files().files
    for name, content in files.items():
        path = to / f"iter_{step:07d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    dist.barrier()
    if dist.get_rank() == 0:
        (to / "latest_checkpointed_iteration.txt").write_text(str(step))
    dist.barrier()
    return sorted(files)


STEPS = (3, 4, 5)  # in torch_dist 4 has the structure of 3, and 5 another


def saves_both_ways(rank: int, place: Path, how: How) -> list[dict[str, Any]]:
    from troupe.checkpoint.megatron.checkpointer import _checkpointers

    training, told, plans = made(place, how), [], []
    theirs, written = place.with_name("theirs"), place.with_name("written")
    for step in STEPS:
        training.train(step)
        random.seed(step)  # the state of that is longer or shorter in a pickle
        training.args.no_save_rng = step == STEPS[-1] or None
        save_by_megatron(training, step, 77)
        if rank == 0:
            theirs.mkdir(exist_ok=True)
            for path in list(place.iterdir()):
                path.replace(theirs / path.name)
        dist.barrier()
        before = patched()
        assert ours.save_checkpoint(step, *training.everything, 77, storage_type=MEMORY)
        assert before == patched()
        assert os.listdir(place) == []  # no tracker, no directory
        plans.append(_checkpointers[str(place)][0].plan)
        told.append({"names": write_from_memory(place, step, written), "digest": training.digest()})
    planned = [plans[1] is plans[0], plans[2] is plans[1]]
    assert planned == ([True, False] if how[0] == "torch_dist" else [True, True])
    assert (plans[0] is None) == (how[0] == "torch")
    for step, one in zip(STEPS, told, strict=True):
        one["same"] = read_by_megatron(written, how, step) == one["digest"]
    return told


def read_by_megatron(place: Path, how: How, step: int) -> str:
    """Without us."""
    from megatron.training import checkpointing

    dist.barrier()
    if dist.get_rank() == 0:
        (place / "latest_checkpointed_iteration.txt").write_text(str(step))
    dist.barrier()
    other = made(place, how, no_load_rng=step == STEPS[-1] or None)
    other.step, flops = checkpointing.load_checkpoint(*other.everything)
    assert (other.step, flops) == (step, 77)
    return other.digest()


@HOWS
def test_files_are_megatrons_and_megatron_reads_them(tmp_path: Path, how: How):
    job = Job(tmp_path, [2])
    told = job.run(saves_both_ways, tmp_path / "c", how)
    job.close()
    for turn, step in enumerate(STEPS):
        assert [of_rank[turn]["same"] for of_rank in told] == [True, True]
        theirs, written = (tmp_path / f"{whose}/iter_{step:07d}" for whose in ("theirs", "written"))
        names = sorted(str(p.relative_to(theirs)) for p in theirs.rglob("*") if p.is_file())
        assert names == sorted(name for of_rank in told for name in of_rank[turn]["names"])
        compare(theirs, written, names, how[0])


def compare(theirs: Path, written: Path, names: list[str], fmt: str) -> None:
    for name in names:
        if name.endswith(".pt"):
            states = [torch.load(place / name, weights_only=False) for place in (theirs, written)]
            assert same(*states, name) == []
        elif name.endswith(".json"):
            assert (theirs / name).read_bytes() == (written / name).read_bytes()
    if fmt == "torch_dist":
        metadata = [pickle.loads((place / ".metadata").read_bytes()) for place in (theirs, written)]
        assert metadata[0].state_dict_metadata == metadata[1].state_dict_metadata
        where = [{index: info.relative_path for index, info in one.storage_data.items()} for one in metadata]
        assert where[0] == where[1]
        # Item for item what torch.load makes of the bytes.
        for index, info in metadata[0].storage_data.items():
            assert same(item(theirs, info), item(written, metadata[1].storage_data[index]), index.fqn) == []


def item(place: Path, info: Any) -> Any:
    with open(place / info.relative_path, "rb") as file:
        file.seek(info.offset)
        return torch.load(io.BytesIO(file.read(info.length)), weights_only=False)


# ---- Another world, from memory ----


def saves_of_replicas(rank: int, place: Path, fmt: str) -> str:
    training = made(place, (fmt, 1, False))
    training.train(4)
    assert ours.save_checkpoint(4, *training.everything, storage_type=MEMORY)
    return training.digest()


def loads_of_replicas(rank: int, place: Path, fmt: str) -> Any:
    training = made(place, (fmt, 1, False))
    training.step, _ = ours.load_checkpoint(*training.everything)
    return training.digest()


@pytest.mark.parametrize("fmt", FORMATS)
def test_ranks_without_files_and_worlds_of_another_size_get_them_from_those_that_have_them(tmp_path: Path, fmt: str):
    job = Job(tmp_path, [1, 1])
    wanted = job.run(saves_of_replicas, tmp_path / "c", fmt)
    assert job.run(loads_of_replicas, tmp_path / "c", fmt) == wanted
    (tmp_path / "l").mkdir()
    larger = Job(tmp_path / "l", [1, 1, 1])
    larger.memory[0], larger.memory[1], larger.generation = job.memory[0], job.memory[1], 7
    assert larger.run(loads_of_replicas, tmp_path / "c", fmt) == wanted[:1] * 3
    larger.close()


def saves_for_another(rank: int, place: Path, distributed: bool) -> None:
    training = made(place / "theirs", ("torch_dist", 2, distributed), dist_ckpt_optim_fully_reshardable=True)
    training.train(4)
    save_by_megatron(training, 4, 5)
    training.args.save = str(place / "ours")
    assert ours.save_checkpoint(4, *training.everything, 5, storage_type=MEMORY)


def loads_of_another(rank: int, place: Path, how: How) -> Any:
    from megatron.training import checkpointing

    digests = []
    for load, where in ((ours.load_checkpoint, "ours"), (checkpointing.load_checkpoint, "theirs")):
        training = made(place / where, how, dist_ckpt_optim_fully_reshardable=True)
        training.step, flops = load(*training.everything)
        assert (training.step, flops) == (4, 5)
        before = training.digest()
        training.train(6)
        digests.append([before, training.digest()])
    return digests, [line for line in said.lines if "comes from" in line]


@pytest.mark.parametrize("distributed", [False, True], ids=["", "distributed optimizer"])
def test_another_tensor_parallel_size_has_the_bits_that_megatrons_own_save_gives(tmp_path: Path, distributed: bool):
    job = Job(tmp_path, [1, 1])
    job.run(saves_for_another, tmp_path, distributed)
    for (mine, theirs), lines in job.run(loads_of_another, tmp_path, ("torch_dist", 1, distributed)):
        assert mine == theirs
        assert len(lines) == 1 and lines[0].endswith("step 4 comes from memory")
    assert not (tmp_path / "ours/iter_0000004").exists()
    (tmp_path / "l").mkdir()
    larger = Job(tmp_path / "l", [1, 1, 1])
    larger.memory[0], larger.memory[1], larger.generation = job.memory[0], job.memory[1], 7
    for (mine, theirs), lines in larger.run(loads_of_another, tmp_path, ("torch_dist", 1, distributed)):
        assert mine == theirs
        assert "in memory" in lines[0] or "from memory" in lines[0] or "from a peer" in lines[0]
    larger.close()
