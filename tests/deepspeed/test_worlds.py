"""A world of another size goes on: the same bits as DeepSpeed's own converter and loader give of the same step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from conftest import Start

WORLDS = Path(__file__).with_name("worlds.py")


def job(start: Start, what: str, place: Path, stage: int, world: int, tag: str) -> dict:
    run = start([str(WORLDS), what, str(place), str(stage), "false", tag], procs=world)
    assert run.wait(300) == [0], run.err()[-4000:]
    return json.loads((place / f"{what}.json").read_text())


@pytest.mark.parametrize(
    "stage, before, after, tag",
    [(1, 2, 1, "global_step5"), (2, 1, 2, "5"), (3, 2, 1, "global_step5"), (3, 1, 2, "global_step5")],
)
def test_another_world_has_the_same_bits(
    start: Start, tmp_path: Path, stage: int, before: int, after: int, tag: str
) -> None:
    job(start, "save", tmp_path, stage, before, tag)
    loaded = job(start, "load", tmp_path, stage, after, tag)
    job(start, "peer", tmp_path, stage, after, tag)
    saved, ours, theirs = (torch.load(tmp_path / f"{what}.pt") for what in ("save", "load", "peer"))
    assert saved["state"].keys() == ours["state"].keys() == theirs["state"].keys()
    for name, tensor in ours["state"].items():
        assert torch.equal(tensor, saved["state"][name]), name
    for name, tensor in ours["after"].items():  # of one more step
        assert torch.equal(tensor, theirs["after"][name]), name
    assert ours["lr"] == theirs["lr"] == saved["lr"]
    assert loaded["mine"] == 5
    assert Path(loaded["path"]).parent == tmp_path / "checkpoints" / tag and Path(loaded["path"]).exists()
    assert not [name for name in loaded["left"] if name.startswith(".universal")]
