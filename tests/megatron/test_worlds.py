"""What lies on the disk is Megatron's to read, in worlds of other sizes too, with the same bits as of Megatron's own save."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frameworks import Start

WORLDS = Path(__file__).with_name("worlds.py")
Said = list[dict]


def job(start: Start, what: str, place: Path, how: tuple[str, int, str], world: int) -> Said:
    fmt, tensor_parallel, distributed = how
    run = start([str(WORLDS), what, str(place), fmt, str(tensor_parallel), distributed], procs=world)
    assert run.wait(300) == [0], run.err()[-4000:]
    return [json.loads((place / f"{what}-{rank}.json").read_text()) for rank in range(world)]


@pytest.mark.parametrize(
    ("before", "after", "world"),
    [
        (("torch", 2, "false"), ("torch", 2, "false"), 2),
        (("torch", 1, "true"), ("torch", 1, "true"), 2),
        (("torch_dist", 2, "false"), ("torch_dist", 1, "false"), 1),
        (("torch_dist", 2, "true"), ("torch_dist", 1, "true"), 2),
    ],
    ids=["torch", "torch, distributed optimizer", "TP 2 to TP 1", "TP 2 to DP 2, distributed optimizer"],
)
def test_another_world_has_the_bits_that_megatrons_own_save_gives(
    start: Start, tmp_path: Path, before: tuple[str, int, str], after: tuple[str, int, str], world: int
) -> None:
    saved = job(start, "save", tmp_path, before, 2)
    assert (tmp_path / "ours/latest_checkpointed_iteration.txt").read_text() == "5"  # and not 6, which is in memory
    assert [path.name for path in (tmp_path / "ours").glob("iter_*")] == ["iter_0000005"]
    loaded = job(start, "load", tmp_path, after, world)
    theirs = job(start, "theirs", tmp_path, after, world)
    assert loaded == theirs == job(start, "theirs_of_theirs", tmp_path, after, world)
    assert loaded[0]["said"] == [5, 50]
    if before == after:
        assert loaded == saved
