"""Steps that are in memory alone outlive the workers and the nodes that made them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import WORKERS, Start
from launchers import Run, until

SCRIPT = str(Path(__file__).with_name("in_memory.py"))
STEPS = 200
WITHIN = 300


def notes(place: Path, how: str, rank: int) -> list[dict]:
    """Whole lines: a rank may be killed while it writes."""
    file = place / f"{how}-{rank}.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def alone(place: Path, stage: int) -> None:
    """DeepSpeed under torchrun, without anything of Troupe's."""
    place.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {name: value for name, value in (os.environ | WORKERS | {"DS_ACCELERATOR": "cpu"}).items() if "TROUPE" not in name}
    environment["PYTHONPATH"] = ""
    said = subprocess.run(
        [*command, SCRIPT, str(place), str(stage), str(STEPS), "own"],
        env=environment, capture_output=True, text=True, timeout=WITHIN, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-4000:]


def job(start: Start, place: Path, stage: int, how: str, **more: object) -> Run:
    place.mkdir()
    return start([SCRIPT, str(place), str(stage), str(STEPS), how], **more)


def worker_of(run: Run, rank: int) -> int:
    for pid in run.leftovers():
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in variables and SCRIPT.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError(f"rank {rank} is not there")


def files(step: Path) -> set[str]:
    return {path.name for path in step.iterdir() if not path.name.startswith("troupe-")}


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_killed_beyond_its_restarts_the_newest_step_is_deepspeeds_on_the_disk(start: Start, tmp_path: Path, stage: int) -> None:
    place, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    run = job(start, place, stage, "config", procs=2, restarts=0)
    until(lambda: len(notes(place, "config", 0)) > 3, WITHIN, "some steps")
    time.sleep(random.uniform(0, 1.5))
    assert not list((place / "checkpoints").glob("global_step*")), "memory alone"
    os.kill(worker_of(run, random.randrange(2)), signal.SIGKILL)
    assert run.wait(WITHIN) != [0]
    assert run.leftovers() == []

    ckpt = place / "checkpoints"
    [step] = ckpt.glob("global_step*")
    assert (ckpt / "latest").read_text().strip() == step.name
    count, made = int(step.name.removeprefix("global_step")), [notes(place, "config", rank)[-1]["step"] for rank in range(2)]
    assert min(made) <= count <= max(made) + 1, f"all ranks had {min(made)} in memory"
    print(f"ZeRO {stage}: ranks were at {made}, step {count} was written")

    alone(place, stage)  # goes on from there
    alone(undisturbed, stage)
    for rank in range(2):
        went_on, whole = notes(place, "own", rank), notes(undisturbed, "own", rank)
        assert went_on[0]["begun"].startswith(str(step)) and not whole[0]["begun"]
        assert [(one["step"], one["digest"]) for one in went_on] == [(one["step"], one["digest"]) for one in whole[count:]]


@pytest.mark.parametrize("stage", [2, 3])
def test_a_node_that_is_lost_with_its_memory_costs_no_step(start: Start, tmp_path: Path, stage: int) -> None:
    place, undisturbed = tmp_path / "lost", tmp_path / "undisturbed"
    run = job(start, place, stage, "checkpointer", nodes=2, procs=1, restarts=3)
    until(lambda: len(notes(place, "checkpointer", 1)) > 5, WITHIN, "some steps")
    time.sleep(random.uniform(0, 1.5))
    os.kill(run.launchers[1].pid, signal.SIGKILL)  # its workers and its memory end with it
    run.launchers[1].wait()
    run.launchers[1] = run.start_node(1)
    run.launchers.pop()
    assert run.wait(WITHIN) == [0, 0], run.err(0)[-4000:] + run.err(1)[-4000:]
    assert not list((place / "checkpoints").glob("global_step*")), "nothing was on the disk"

    alone(undisturbed, stage)
    for rank in range(2):
        ours, whole = notes(place, "checkpointer", rank), notes(undisturbed, "own", rank)
        [begun] = [i for i, one in enumerate(ours) if one.get("begun")]
        assert ours[begun - 1]["step"] - 1 <= ours[begun]["step"] <= ours[begun - 1]["step"] + 1
        assert ours[begun]["step"] > 3
        assert [(one["step"], one["digest"]) for one in ours[begun:]] == [(one["step"], one["digest"]) for one in whole[ours[begun]["step"] :]]
