"""torch.distributed.checkpoint with snapshots as its storage: PyTorch's own writer and reader are the judges."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from few_ranks import Job, said
from sharded import KINDS, Trained, blank, same, whole
from torch.distributed.checkpoint import DefaultSavePlanner

from troupe.checkpoint import StorageType
from troupe.checkpoint.contents import Files, FilesAgain
from troupe.checkpoint.dcp import DcpCheckpointer

MEMORY, DISK = StorageType.MEMORY, StorageType.DISK

warnings.filterwarnings("ignore", category=FutureWarning)


def written_out(checkpointer: DcpCheckpointer, directory: Path) -> None:
    """What this rank has in memory as it would be on a disk."""
    arena = checkpointer._arena
    image = arena.newest()
    arena.seal(image)
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in arena.files(image).items():
        (directory / name).write_bytes(content)
    dist.barrier()


# ---- Every kind of sharding ----


def save_and_read_by_pytorch(rank: int, kind: str, place: Path) -> bool:
    trained = Trained(kind)
    trained.step(1)
    state = trained.state(1)
    with DcpCheckpointer(place) as checkpointer:
        dcp.save(state, storage_writer=checkpointer.get_storage_writer(1, MEMORY))
        written_out(checkpointer, place / "ours")
        dcp.save(state, checkpoint_id=str(place / "theirs"))
        before = copy.deepcopy(state)
        for name in ("ours", "theirs"):
            found = blank(trained.state(0))
            dcp.load(found, checkpoint_id=str(place / name))
            assert same(found, before)
        ours, theirs = (dcp.FileSystemReader(place / name).read_metadata() for name in ("ours", "theirs"))
        assert ours.state_dict_metadata == theirs.state_dict_metadata
        assert ours.planner_data == theirs.planner_data
        assert {i: info.relative_path for i, info in ours.storage_data.items()} == {
            i: info.relative_path for i, info in theirs.storage_data.items()
        }
        reader = checkpointer.get_storage_reader()
        assert reader and reader.step == 1
        found = blank(trained.state(0))
        dcp.load(found, storage_reader=reader)
        return same(found, before)


@pytest.mark.parametrize("kind", [k if k in ("fsdp2", "tp") else pytest.param(k, marks=pytest.mark.long) for k in KINDS])
def test_what_is_saved_is_what_pytorch_saves_and_reads(kind: str, tmp_path: Path):
    job = Job(tmp_path, [2, 2])
    assert job.run(save_and_read_by_pytorch, kind, tmp_path / "c") == [True] * 4
    job.close()


# ---- Saves of the same structure ----


def used_by(checkpointer: DcpCheckpointer) -> list[type]:
    """The kinds of files that are saved from now on."""
    used: list[type] = []
    save = checkpointer.save_files

    def save_files(step: int, files: Files, *rest: Any) -> bool:
        used.append(type(files))
        return save(step, files, *rest)

    checkpointer.save_files = save_files  # type: ignore[method-assign]
    return used


def save_many(rank: int, place: Path) -> list[bool]:
    trained, found = Trained("fsdp2"), []
    with DcpCheckpointer(place) as checkpointer:
        used = used_by(checkpointer)
        for step in range(1, 7):
            trained.step(step)
            state = trained.state(step)
            if step >= 3:  # what is no tensor is longer, at one rank
                state["note"]["lr"] = "x" * 1000 * step
            assert checkpointer.save(step, state, storage_type=MEMORY)
            written_out(checkpointer, place / "ours" / str(step))
            again = blank(trained.state(0))
            dcp.load(again, checkpoint_id=str(place / "ours" / str(step)))
            found.append(same(again, state))
        state = trained.state(7) | {"more": torch.ones(3)}
        assert checkpointer.save(7, state, storage_type=MEMORY)
        written_out(checkpointer, place / "ours/7")
        again = blank(state)
        dcp.load(again, checkpoint_id=str(place / "ours/7"))
        as_expected = used == [Files] * 4 + [FilesAgain] * 2 + [Files]
        return [*found, same(again, state), checkpointer.get_storage_reader().step == 7, as_expected]


def test_a_save_of_the_same_structure_is_as_good_as_a_first_one(tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    assert job.run(save_many, tmp_path / "c") == [[True] * 9] * 3
    job.close()


class Plain:
    """A state of plain tensors: whole storages, parts of them, with gaps or without, none, one twice."""

    def __init__(self, rank: int):
        whole = torch.arange(40.0) + rank
        self.tensors = {
            "a": torch.arange(6.0).view(2, 3), "whole": whole, "part": whole[8:20], "empty": torch.empty(0, 3),
            "none of it": whole[5:5], "p": torch.nn.Parameter(torch.rand(3)), "bytes": torch.arange(5, dtype=torch.int8),
        }  # fmt: skip
        self.tensors["again"] = self.tensors["a"]
        self.rank, self.numbers = rank, {"lr": 0.5, "betas": (0.9, 0.999), 3: [1, None, True, "x"]}
        self.own = 1

    def state(self, step: int) -> dict[str, Any]:
        mine = {f"{name} {self.rank}": tensor for name, tensor in self.tensors.items()}
        return {"model": mine, "numbers": dict(self.numbers), f"of {self.rank}": self.own, "step": step}


def into_other_memory(plain: Plain) -> None:
    plain.tensors["a"].data = plain.tensors["a"].detach().clone() + 1
    plain.tensors["bytes"] = plain.tensors["bytes"].clone()
    plain.tensors["again"] = plain.tensors["a"]


# What happens, and whether the state is as it was before but for numbers and places.
HAPPENS = {
    "nothing": (lambda plain: None, True),
    "trained": (lambda plain: plain.tensors["whole"].add_(1), True),
    "other memory": (into_other_memory, True),
    "numbers": (lambda plain: plain.numbers.update(lr=0.25, betas=(0.8, 0.99)), True),
    "longer": (lambda plain: setattr(plain, "own", 1 << 1000), True),
    "longer at one rank": (lambda plain: setattr(plain, "own", 1 << 3000 if plain.rank else 2), True),
    "a name": (lambda plain: plain.numbers.update({3: [1, None, True, "y"]}), False),
    "another part": (lambda plain: plain.tensors.update(part=plain.tensors["whole"][9:21]), False),
    "another shape": (lambda plain: plain.tensors["a"].resize_(3, 2), False),
    "one more": (lambda plain: plain.tensors.update(more=torch.ones(2)), False),
    "gaps": (lambda plain: plain.tensors.update(gaps=torch.arange(12.0).view(3, 4)[:, 1:3]), None),
    "still gaps": (lambda plain: None, False),
}


def save_plain(rank: int, place: Path, copy_on_write: bool) -> list[tuple[str, bool, bool]]:
    plain, found, step = Plain(rank), [], 0
    with DcpCheckpointer(place, copy_on_write=copy_on_write) as checkpointer:
        used = used_by(checkpointer)

        def saved() -> bool:
            nonlocal step
            step += 1
            used.clear()
            state = plain.state(step)
            before = copy.deepcopy(state)
            assert checkpointer.save(step, state, storage_type=MEMORY)
            checkpointer._arena.wait()
            written_out(checkpointer, place / "ours" / str(step))
            again = blank(plain.state(0))
            dcp.load(again, checkpoint_id=str(place / "ours" / str(step)))
            return same(again, before)

        for name, (happens, as_before) in HAPPENS.items():
            assert saved() and saved() and saved()
            assert name == "still gaps" or used == [FilesAgain], name
            happens(plain)
            right = saved()
            found.append((name, right, as_before is None or used == [FilesAgain if as_before else Files]))
    return found


@pytest.mark.parametrize("copy_on_write", [False, True], ids=["copied", "copy-on-write"])
def test_plain_tensors_that_are_as_before_are_saved_from_where_they_are(copy_on_write: bool, tmp_path: Path):
    job = Job(tmp_path, [2])
    assert job.run(save_plain, tmp_path / "c", copy_on_write) == [[(name, True, True) for name in HAPPENS]] * 2
    job.close()


def save_by_planner_that_keeps(rank: int, place: Path) -> bool:
    trained, planner = Trained("fsdp2"), DefaultSavePlanner(enable_plan_caching=True)
    with DcpCheckpointer(place) as checkpointer:
        writer = checkpointer.get_storage_writer(storage_type=MEMORY)
        for step in range(1, 4):
            trained.step(step)
            dcp.save(trained.state(step), storage_writer=writer, planner=planner, checkpoint_id=str(place / f"s{step}"))
        written_out(checkpointer, place / "out")
        again = blank(trained.state(0))
        dcp.load(again, checkpoint_id=str(place / "out"))
        return same(again, trained.state(3))


def save_behind(rank: int, place: Path) -> tuple[bool, int]:
    trained, group = Trained("fsdp2"), dist.new_group(backend="gloo")
    with DcpCheckpointer(place) as checkpointer:
        for step in range(1, 4):
            trained.step(step)
            state = trained.state(step)
            kept = copy.deepcopy(state)
            writer = checkpointer.get_storage_writer(step, MEMORY)
            future = dcp.async_save(state, storage_writer=writer, process_group=group)
            trained.step(100)  # what is kept is the state of the call
        future.result()
        again = blank(trained.state(0))
        reader = checkpointer.get_storage_reader()
        dcp.load(again, storage_reader=reader)
        return same(again, kept), reader.step or again["step"]


def test_pytorchs_cache_of_plans_and_its_async_save(tmp_path: Path):
    job = Job(tmp_path, [2])
    assert job.run(save_by_planner_that_keeps, tmp_path / "c") == [True] * 2
    assert job.run(save_behind, tmp_path / "d") == [(True, 3)] * 2
    job.close()


# ---- Another world ----


def save_with(rank: int, kind: str, place: Path) -> Any:
    trained = Trained(kind)
    trained.step(1)
    with DcpCheckpointer(place) as checkpointer:
        assert checkpointer.save(1, trained.state(1), storage_type=MEMORY)
        written_out(checkpointer, place / "1")
    return whole(trained.state(1))


def load_with(rank: int, kind: str, place: Path) -> Any:
    trained = Trained(kind, seed=5)
    with DcpCheckpointer(place) as checkpointer:
        reader = checkpointer.get_storage_reader()
        state = blank(trained.state(0))
        dcp.load(state, storage_reader=reader)
        by_pytorch = blank(trained.state(0))
        dcp.load(by_pytorch, checkpoint_id=str(place / "1"))
        assert same(state, by_pytorch)
        trained.take(state)
        assert any("comes from memory" in line for line in said.lines), said.lines
    return whole(trained.state(1))


@pytest.mark.parametrize(("before", "after"), [("fsdp2", "tp")])
def test_another_world_and_another_sharding_have_the_same_state_from_memory(
    before: str, after: str, tmp_path: Path
):
    job = Job(tmp_path, [2, 2])
    job.nodes = [2, 1]
    states = job.run(save_with, before, tmp_path / "c")
    job.nodes = [2, 2]
    for state in job.run(load_with, after, tmp_path / "c"):
        assert same(state, states[0])
    job.close()
