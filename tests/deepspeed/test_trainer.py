"""Transformers' Trainer with ZeRO: what Trainer would have written, and a killed job that ends with the same bits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from frameworks import Run, Start
from launchers import free_port, until

SCRIPT = str(Path(__file__).with_name("trainer.py"))
STEPS = 12


def trained(
    start: Start, place: Path, stage: int, how: str, killed: int = 0, nodes: int = 1, steps: int = STEPS, ranks: int = 2
) -> Run:
    worker = [SCRIPT, str(place), str(stage), str(steps), str(killed), how]
    run = start(worker, nodes=nodes, procs=ranks // nodes, restarts=1 if killed else 0)
    assert run.wait(300) == [0] * nodes, run.err()[-4000:]
    return run


def end(place: Path) -> dict:
    return json.loads((place / "end.json").read_text())


def names(step: Path) -> set[str]:
    return {str(path.relative_to(step)) for path in step.rglob("*") if path.is_file() and not path.name.startswith((".", "troupe-"))}


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


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_another_world_goes_on_as_by_deepspeeds_own_converter(start: Start, tmp_path: Path, stage: int) -> None:
    ours, own = tmp_path / "ours", tmp_path / "own"
    trained(start, ours, stage, "flash")
    step = own / f"checkpoint-{STEPS}"
    shutil.copytree(ours / step.name, step)
    if stage:
        converted(step)
    trained(start, own, stage, "universal", killed=STEPS, steps=STEPS + 5, ranks=1)
    run = trained(start, ours, stage, "flash", steps=STEPS + 5, ranks=1)
    assert f"training goes on from step {STEPS} of a world of 2 at {ours}" in run.err()
    assert end(ours) == end(own)
    assert not stage or names(ours / step.name) >= {f"global_step{STEPS}/zero_pp_rank_1_mp_rank_00_optim_states.pt"}  # as it was
    assert not list(ours.glob(".universal-*"))
    # What it saves then is DeepSpeed's own form again.
    trained(start, ours, stage, "flash", steps=STEPS + 8, ranks=1)
    assert [step for step, _ in end(ours)["losses"]] == [*range(1, STEPS + 9)]


def converted(step: Path) -> None:
    """In place, by DeepSpeed's program."""
    of_zero = step / f"global_step{STEPS}"
    names = ["--input_folder", str(of_zero), "--output_folder", f"{of_zero}_universal", "--inject_missing_state"]
    program = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", *names, "--num_extract_workers", "1", "--num_merge_workers", "1"]
    made = subprocess.run(program, env=os.environ | {"DS_ACCELERATOR": "cpu"}, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr[-4000:]
    assert (step / "latest_universal").read_text() == f"{of_zero.name}_universal"


@pytest.mark.parametrize("stage", [2, 3])
def test_a_node_that_joins_has_its_part_of_a_step_that_is_in_memory_alone(start: Start, tmp_path: Path, stage: int) -> None:
    place = tmp_path / "c"
    options = ["--nnodes=1:2", "--rdzv-conf=last_call_timeout=1"]
    run = start([SCRIPT, str(place), str(stage), "60", "0", "memory"], port=free_port(), procs=1, options=options)
    until((place / "made-5").exists, 200, "some steps")
    run.start_node(1)
    run.nodes = 2
    assert run.wait(300) == [0, 0], run.err(0)[-4000:] + run.err(1)[-4000:]
    assert re.search(r"training goes on from step \d+ of a world of 1, which rank 0 has from memory", run.err(0) + run.err(1))
    assert [step for step, _ in end(place)["losses"]] == [*range(1, 61)]
    assert not list(place.glob("checkpoint-[1-5]"))
