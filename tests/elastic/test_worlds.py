"""Real worlds of gloo ranks, one after the other, each of another size than the one before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
SAMPLES = 96


def run(ranks: int, *words: object) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "troupe.run", "--standalone", f"--nproc-per-node={ranks}"]
        + [str(word) for word in words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def trains(folder: Path, ranks: int, *words: object) -> list[list[list[int]]]:
    """The samples of each rank's steps."""
    run(ranks, HERE / "training.py", folder, *words)
    return [json.loads((folder / f"{words[0]}.rank_{rank}").read_text()) for rank in range(ranks)]


def state(folder: Path, name: str) -> dict[str, Any]:
    return torch.load(folder / f"{name}.pt")


def samples(world: list[list[list[int]]]) -> list[int]:
    return [index for rank in world for batch in rank for index in batch]


def test_four_two_four_ranks_see_each_sample_once_and_learn_what_four_learn(tmp_path: Path) -> None:
    whole = trains(tmp_path, 4, "whole", 12)
    assert sorted(samples(whole)) == list(range(SAMPLES))
    first = trains(tmp_path, 4, "first", 3)
    smaller = trains(tmp_path, 2, "smaller", 8, "first")  # 4 steps of the optimizer
    last = trains(tmp_path, 4, "last", 5, "smaller")
    assert sorted(samples(first + smaller + last)) == list(range(SAMPLES))
    for name in ("model", "optimizer"):
        torch.testing.assert_close(state(tmp_path, "last")[name], state(tmp_path, "whole")[name])
    for number in range(4):
        step = [b for rank in smaller for b in rank[2 * number : 2 * number + 2]]
        assert sorted(sum(step, [])) == sorted(
            sum((rank[3 + number] for rank in whole), [])
        ), "the same samples make a step"


def test_all_ranks_change_the_batch_with_the_file_of_rank_0(tmp_path: Path) -> None:
    settings = {"dataloader": {"batch_size": 6, "version": 1}}
    (tmp_path / "settings_0").write_text(json.dumps(settings))
    world = trains(tmp_path, 2, "changed", 100)
    assert [[len(batch) for batch in rank] for rank in world] == [[6] * 8] * 2
    assert sorted(samples(world)) == list(range(SAMPLES))
    assert state(tmp_path, "changed")["sampler"]["completed_num"] == SAMPLES


def test_what_accumulates_right_and_what_is_refused() -> None:
    said = dict(line.split(": ", 1) for line in run(2, HERE / "wrapped.py").splitlines())
    assert said["FSDP"] == said["DDP"] != ""
    refusal = "ElasticTrainer: no gradient of the model's parameters was computed in this step"
    assert said["use_orig_params"] == said["FSDP2"] == refusal
