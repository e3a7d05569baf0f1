"""Training that went back before the newest complete step, and comes to that step again: it takes the place of what is on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from few_ranks import Job
from torch.distributed.checkpoint import FileSystemReader

from troupe.checkpoint import DdpCheckpointer
from troupe.checkpoint.arena import complete_steps
from troupe.checkpoint.contents import File
from troupe.checkpoint.dcp import DcpCheckpointer
from troupe.checkpoint.directories.checkpointer import DirectoryCheckpointer

SIZE = 1 << 18


def state_of(step: int) -> dict[str, torch.Tensor]:
    return {"x": torch.full((SIZE,), float(step))}


class OneFile:
    file = "rank_0.pt"

    def __init__(self, place: Path):
        self.checkpointer = DdpCheckpointer(place)

    def save(self, step: int) -> bool:
        return self.checkpointer.save_checkpoint(step, state_of(step))

    def newest(self) -> int | None:
        found = self.checkpointer.load_checkpoint()
        return int(found["x"][0]) if found else None

    def begins_with(self, step: int) -> None:
        self.checkpointer.load_checkpoint(f"{self.checkpointer.place}/{step}/{self.file}")

    @classmethod
    def on_disk(cls, place: Path, step: int) -> int:
        return int(torch.load(place / str(step) / cls.file)["x"].unique())


class Distributed(OneFile):
    file = "__0_0.distcp"

    def __init__(self, place: Path):
        self.checkpointer = DcpCheckpointer(place)

    def save(self, step: int) -> bool:
        return self.checkpointer.save(step, state_of(step))

    def newest(self) -> int | None:
        reader = self.checkpointer.get_storage_reader()
        return reader.step if reader else None

    def begins_with(self, step: int) -> None:
        assert self.checkpointer.get_storage_reader(f"{self.checkpointer.place}/{step}")

    @classmethod
    def on_disk(cls, place: Path, step: int) -> int:
        found = state_of(0)
        torch.distributed.checkpoint.load(found, storage_reader=FileSystemReader(place / str(step)), no_dist=True)
        return int(found["x"].unique())


class ADirectory(OneFile):
    file = "weights.pt"

    def __init__(self, place: Path):
        self.checkpointer = DirectoryCheckpointer(place)

    def save(self, step: int) -> bool:
        return self.checkpointer.save_directory(step, [File.of_state(self.file, state_of(step))])

    def newest(self) -> int | None:
        found = self.checkpointer.load_directory()
        return found[0] if found else None

    def begins_with(self, step: int) -> None:
        self.checkpointer.begins_with(f"{self.checkpointer.place}/checkpoint-{step}")

    @classmethod
    def on_disk(cls, place: Path, step: int) -> int:
        return int(torch.load(place / f"checkpoint-{step}" / cls.file)["x"].unique())


KINDS = [OneFile, Distributed, ADirectory]


def damage(place: Path, kind: type[OneFile], step: int) -> None:
    [file] = [path for path in place.glob(f"*{step}/{kind.file}")]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def first_life(rank: int, kind: type[OneFile], place: Path) -> None:
    made = kind(place)
    with made.checkpointer:
        for step in (10, 20):
            assert made.save(step) and made.checkpointer.wait_latest_checkpoint(60)


def second_life(rank: int, kind: type[OneFile], place: Path, named: int | None) -> tuple[int | None, bool]:
    """What it went on from, and whether step 20 was written. `named`: what the user has it begin with."""
    made = kind(place)
    with made.checkpointer:
        if named is None:
            began = made.newest()
        else:
            made.begins_with(began := named)
        return began, made.save(20) and made.checkpointer.wait_latest_checkpoint(60)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "c"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path, [1], launched=False)
    yield made
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_newest_step_is_written_again_by_training_that_went_on_from_the_one_before(
    kind: type[OneFile], place: Path, job: Job
):
    job.run(first_life, kind, place)
    damage(place, kind, 20)
    assert job.run(second_life, kind, place, None) == [(10, True)]
    assert kind.on_disk(place, 20) == 20
    assert complete_steps(str(place)) == [20, 10]
    assert job.run(second_life, kind, place, None)[0][0] == 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_newest_step_is_written_again_where_the_user_has_gone_back_before_it(
    kind: type[OneFile], place: Path, job: Job
):
    job.run(first_life, kind, place)
    assert job.run(second_life, kind, place, 10) == [(10, True)]
    assert kind.on_disk(place, 20) == 20


@pytest.mark.parametrize("kind", [OneFile, ADirectory])
@pytest.mark.parametrize("named", [None, 20])
def test_the_step_that_training_went_on_from_stays_and_is_kept(
    kind: type[OneFile], named: int | None, place: Path, job: Job
):
    job.run(first_life, kind, place)
    there = {path: path.stat().st_ino for path in place.glob(f"*20/{kind.file}")}
    assert job.run(second_life, kind, place, named) == [(20, True)]
    assert {path: path.stat().st_ino for path in place.glob(f"*20/{kind.file}")} == there
