"""A step that no load can take, as it is damaged or was cut off, and the life of a job that comes to its number again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from few_ranks import Job

from troupe.checkpoint import DdpCheckpointer, complete_steps
from troupe.checkpoint.contents import File
from troupe.checkpoint.directories.checkpointer import DirectoryCheckpointer

SHARD, MANIFEST = "20/rank_0.pt", "20/troupe-manifest.json"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def changed(path: Path) -> None:
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "its shard is cut": lambda place: cut(place / SHARD),
    "its shard has other bytes": lambda place: changed(place / SHARD),
    "its shard is gone": lambda place: (place / SHARD).unlink(),
    "its manifest is cut": lambda place: cut(place / MANIFEST),
    "its save was cut off": lambda place: (place / MANIFEST).unlink(),
}


def state_of(step: int) -> dict:
    return {"step": step, "x": torch.full((1 << 14,), float(step))}


def life(place: Path, *steps: int) -> tuple[int, list[bool]]:
    """The step that it goes on from, and which of these it could save."""
    with DdpCheckpointer(place) as checkpointer:
        began = checkpointer.load_checkpoint().get("step", 0)
        return began, [checkpointer.save_checkpoint(step, state_of(step)) and checkpointer.wait_latest_checkpoint(60) for step in steps]


def lives(rank: int, places: list[Path], *steps: int) -> list[tuple[int, list[bool]]]:
    return [life(place, *steps) for place in places]


def test_one_that_an_earlier_life_has_left_is_saved_again(tmp_path: Path):
    places = [tmp_path / name.replace(" ", "-") for name in DAMAGES]
    job = Job(tmp_path, [1], launched=False)  # whose every life is a run of its own
    assert job.run(lives, places, 10) == [[(0, [True])] * len(places)]
    assert job.run(lives, places, 20) == [[(10, [True])] * len(places)]
    for place, damage in zip(places, DAMAGES.values(), strict=True):
        damage(place)
    assert job.run(lives, places, 20) == [[(10, [True])] * len(places)]
    for place in places:
        assert complete_steps(str(place)) == [20, 10]
        assert life(place) == (20, [])


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_one_that_this_process_has_saved_is_saved_again(tmp_path: Path, damage: Callable[[Path], None]):
    assert life(tmp_path, 10, 20) == (0, [True, True])
    damage(tmp_path)
    assert life(tmp_path, 20) == (10, [True])
    assert life(tmp_path) == (20, [])


def test_one_that_was_the_first_of_all_is_saved_again(tmp_path: Path):
    job, place = Job(tmp_path, [1], launched=False), tmp_path / "c"
    assert job.run(lives, [place], 20) == [[(0, [True])]]
    (place / MANIFEST).unlink()
    (place / "dlrover_latest.txt").unlink()  # both come at the end of a save
    assert job.run(lives, [place], 20) == [[(0, [True])]]
    assert life(place) == (20, [])


def test_one_that_is_whole_when_training_comes_to_it_stays(tmp_path: Path):
    job, place = Job(tmp_path, [1], launched=False), tmp_path / "c"
    assert job.run(lives, [place], 10) == [[(0, [True])]]
    assert job.run(lives, [place], 20) == [[(10, [True])]]
    manifest = (place / MANIFEST).read_bytes()
    (place / MANIFEST).unlink()
    with DdpCheckpointer(place) as checkpointer:
        assert checkpointer.load_checkpoint()["step"] == 10
        assert checkpointer.save_checkpoint(15, state_of(15)) and checkpointer.wait_latest_checkpoint(60)
        (place / MANIFEST).write_bytes(manifest)  # its saver has come to its end
        assert checkpointer.save_checkpoint(20, state_of(0)) and not checkpointer.wait_latest_checkpoint(60)
    assert torch.load(place / SHARD)["step"] == 20


def test_a_whole_one_of_another_run_stays(tmp_path: Path):
    job = Job(tmp_path, [1], launched=False)
    place = tmp_path / "c"
    assert job.run(lives, [place], 10, 20, 30) == [[(0, [True, True, True])]]
    before = (place / SHARD).read_bytes()
    with DdpCheckpointer(place) as checkpointer:  # begins anew
        assert checkpointer.save_checkpoint(20, state_of(20)) and not checkpointer.wait_latest_checkpoint(60)
    assert (place / SHARD).read_bytes() == before


def test_what_another_node_has_begun_is_not_set_aside(tmp_path: Path):
    theirs = tmp_path / "checkpoint-20/theirs"
    theirs.parent.mkdir()
    theirs.touch()
    with DirectoryCheckpointer(tmp_path) as first, DirectoryCheckpointer(tmp_path) as second:
        for node in (first, second):
            node.note_others()
        first.others.make_way(20)
        assert first.save_directory(20, [File.of_state("weights.pt", state_of(20))]) and first.wait_latest_checkpoint(60)
        second.others.make_way(20)
    assert complete_steps(str(tmp_path)) == [20]
    assert (tmp_path / "set-aside/checkpoint-20/theirs").exists()
