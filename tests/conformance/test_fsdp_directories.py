"""Directories to which Trainer and Accelerate write by PyTorch's FileSystemWriter: kept in memory, and read by its FileSystemReader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from few_ranks import Job, context, said
from sharded import Trained, blank, same, whole

from troupe.checkpoint import CheckpointError, File, Files, StorageType
from troupe.checkpoint.directories.capture import Capture
from troupe.checkpoint.directories.fsdp import FsdpDirectoryCheckpointer

context.set_forkserver_preload(["torch", "torch.distributed", "troupe.checkpoint.directories.fsdp"])

NATIVE = dcp.FileSystemWriter, dcp.FileSystemReader.read_data
PARTS = "pytorch_model_fsdp_0", "optimizer_0"


def write(directory: Path, state: dict[str, Any]) -> None:
    """As Accelerate does: each part by a call of its own, and a file of each rank."""
    for part, which in zip(PARTS, ("model", "optimizer"), strict=True):
        (directory / part).mkdir(parents=True, exist_ok=True)
        dcp.save({which: state[which]}, storage_writer=dcp.FileSystemWriter(directory / part))
    torch.save(dist.get_rank(), directory / f"rng_state_{dist.get_rank()}.pth")


def read(directory: str | Path, into: dict[str, Any]) -> dict[str, Any]:
    for part, which in zip(PARTS, ("model", "optimizer"), strict=True):
        found = {which: into[which]}
        dcp.load(found, storage_reader=dcp.FileSystemReader(Path(directory) / part))
        into[which] = found[which]
    return into


def save(checkpointer: FsdpDirectoryCheckpointer, step: int, state: dict[str, Any], storage: StorageType) -> bool:
    capture = Capture()
    try:
        with checkpointer.noting(capture):
            write(capture.root / f"checkpoint-{step}", state)
        assert dcp.FileSystemWriter is NATIVE[0]
        return checkpointer.save_directory(step, capture.files(f"checkpoint-{step}"), storage)
    finally:
        capture.close()


def save_and_read(rank: int, kind: str, place: Path) -> list[str]:
    trained = Trained(kind)
    trained.step(1)
    state = trained.state(1)
    with FsdpDirectoryCheckpointer(place / "ours") as checkpointer:
        assert save(checkpointer, 3, state, StorageType.DISK)
        assert checkpointer.wait_latest_checkpoint(0) is False  # no launcher writes here
        found = checkpointer.load_directory()
        assert found and found[0] == 3
        with checkpointer.reading():
            ours = read(found[1], blank(trained.state(0)))
        assert dcp.FileSystemReader.read_data is NATIVE[1]
        write(place / "theirs", state)
        dist.barrier()
        theirs = read(place / "theirs", blank(trained.state(0)))
        assert all(same(ours[part], theirs[part]) and same(ours[part], state[part]) for part in ("model", "optimizer"))
        names = sorted(str(path.relative_to(found[1])) for path in Path(found[1]).rglob("*") if not path.is_dir())
        dist.barrier()  # before any rank's files go
        return names


@pytest.mark.parametrize("kind", ["fsdp2", pytest.param("fsdp1", marks=pytest.mark.long)])
def test_what_a_framework_writes_comes_back_as_it_would_read_it(kind: str, tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    for names in job.run(save_and_read, kind, tmp_path):
        of_parts = [f"{part}/{name}" for part in PARTS for name in (".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp")]
        assert names == sorted([*of_parts, *(f"rng_state_{rank}.pth" for rank in range(3))])
    job.close()


def save_in_memory(rank: int, place: Path) -> Any:
    trained = Trained("fsdp2")
    trained.step(1)
    with FsdpDirectoryCheckpointer(place) as checkpointer:
        assert save(checkpointer, 1, trained.state(1), StorageType.MEMORY)
    return whole(trained.state(1))


def load_in_memory(rank: int, place: Path) -> tuple[Any, list[int]]:
    trained = Trained("fsdp2", seed=5)
    with FsdpDirectoryCheckpointer(place) as checkpointer:
        found = checkpointer.load_directory()
        assert found
        with checkpointer.reading():
            state = trained.state(0) | read(found[1], {part: blank(trained.state(0)[part]) for part in ("model", "optimizer")})
        trained.take(state)
        ranks = [torch.load(path) for path in sorted(Path(found[1]).glob("rng_state_*.pth"))]
        dist.barrier()
    return whole(trained.state(1)), ranks


def test_another_number_of_ranks_goes_on_from_memory(tmp_path: Path):
    job = Job(tmp_path, [2, 2])
    job.nodes = [2, 1]
    states = job.run(save_in_memory, tmp_path / "c")
    job.nodes = [2, 2]
    for state, ranks in job.run(load_in_memory, tmp_path / "c"):
        assert same(state, states[0]) and ranks == [0, 1, 2]
    job.close()


def lay_out(rank: int) -> list[bool]:
    """Where parts lie is known before there is a save."""
    from troupe.checkpoint import Arena, Part

    arena, alike = Arena(), []
    for numel in (0, 1, 63, 64, 1000, 70_000):
        parts = [Part(b"x" * 7), Part.of_state(torch.rand(numel)), Part(b"head", [torch.rand(numel).untyped_storage()])]
        files = Files([File("a", parts), File("b", [Part.of_state({"x": torch.rand(3), "y": torch.rand(numel)})])])
        files.lay_out()
        before = [(part.begin, part.size) for part in files.parts]
        arena.save(numel, files)
        alike.append(before == [(part.begin, part.size) for part in files.parts])
    arena.close()
    return alike


def test_parts_lie_where_it_was_said_before(tmp_path: Path):
    job = Job(tmp_path, [1])
    assert job.run(lay_out) == [[True] * 6]
    job.close()
    with pytest.raises(CheckpointError, match="it is empty"):
        Files([File("", [])]).lay_out()
