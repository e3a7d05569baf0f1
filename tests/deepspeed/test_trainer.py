"""Transformers' Trainer with ZeRO: what Trainer would have written, and a killed job that ends with the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from frameworks import Run, Start

SCRIPT = str(Path(__file__).with_name("trainer.py"))
STEPS = 12


def trained(start: Start, place: Path, stage: int, how: str, killed: int = 0, nodes: int = 1) -> Run:
    worker = [SCRIPT, str(place), str(stage), str(STEPS), str(killed), how]
    run = start(worker, nodes=nodes, procs=2 // nodes, restarts=1 if killed else 0)
    assert run.wait(300) == [0] * nodes, run.err()[-4000:]
    return run


def end(place: Path) -> dict:
    return json.loads((place / "end.json").read_text())


def names(step: Path) -> set[str]:
    return {str(path.relative_to(step)) for path in step.rglob("*") if path.is_file() and not path.name.startswith(".")}


def same(a: object, b: object, where: str) -> None:
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b), where
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            same(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, (list, tuple)):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}/{i}")


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_files_are_trainers_and_a_killed_job_ends_with_the_same_bits(start: Start, tmp_path: Path, stage: int) -> None:
    trained(start, tmp_path / "own", stage, "own")
    run = trained(start, tmp_path / "ours", stage, "flash", killed=8)
    assert "training goes on from step 5, which rank 0 has from memory" in run.err()
    assert end(tmp_path / "own") == end(tmp_path / "ours")
    for step in (5, 10):
        own, ours = tmp_path / f"own/checkpoint-{step}", tmp_path / f"ours/checkpoint-{step}"
        assert names(own) == names(ours)
        assert {f"global_step{step}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1)} <= names(own)
        for name in sorted(name for name in names(own) if name.endswith(("optim_states.pt", "rng_state_1.pth"))):
            same(*(torch.load(at / name, weights_only=False) for at in (own, ours)), name)
        assert (own / "latest").read_text() == (ours / "latest").read_text()
        assert (own / "model.safetensors").read_bytes() == (ours / "model.safetensors").read_bytes()


def test_of_two_nodes_each_has_what_its_ranks_read(start: Start, tmp_path: Path) -> None:
    trained(start, tmp_path / "undisturbed", 2, "flash", nodes=2)
    run = trained(start, tmp_path / "killed", 2, "flash", killed=8, nodes=2)
    assert "training goes on from step 5, which rank 0 has from memory" in run.err()
    assert end(tmp_path / "undisturbed") == end(tmp_path / "killed")


def test_another_world_is_refused_by_name(start: Start, tmp_path: Path) -> None:
    trained(start, tmp_path, 1, "flash")
    run = start([SCRIPT, str(tmp_path), "1", str(STEPS + 5), "0", "flash"], procs=1)
    assert run.wait(300) != [0]
    assert "was saved by 2 ranks, and this world has 1: Trainer reads DeepSpeed's partitions" in run.err()
