"""ms-swift with `--callbacks deepspeed_elastic graceful_exit`: worlds that change, and ranks that are killed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import Start
from launchers import free_port, until

if importlib.util.find_spec("deepspeed") is None or importlib.util.find_spec("deepspeed.elasticity") is None:
    pytest.skip("ms-swift's callback needs a DeepSpeed that has elasticity: see scripts/frameworks/swift.txt", allow_module_level=True)

from elastic_training import ENVIRONMENT, SAVE_STEPS, STEPS, UCP, WITHIN, Training, last, losses, makes, paced, require_same_curve
from killing import ranks
from sft import runs, same

@pytest.fixture(params=[2, 3, 1], ids=lambda stage: f"zero{stage}")
def training(request: pytest.FixtureRequest, start: Start, data: Path, tmp_path: Path) -> Training:
    return Training(start, data, tmp_path, request.param)


def test_four_ranks_become_two_and_four_again(training: Training, tmp_path: Path) -> None:
    alone = training.made_alone()
    output = tmp_path / "output"
    run = training.run(output, 0.5, port=free_port(), options=[*UCP, "--nnodes=1:2", "--rdzv-conf=last_call_timeout=300"])
    until(lambda: "this node runs the job's master" in run.err(), WITHIN, "the first node has the master")
    run.start_node(1)
    makes(run, output, 5)
    run.launchers[1].send_signal(signal.SIGTERM)  # four ranks save and end
    assert run.launchers[1].wait(WITHIN) != 0
    left_at = last(output)
    assert left_at >= 5, "what was made since the last regular save was saved, too"
    makes(run, output, left_at + 2)
    run.start_node(2)
    until(lambda: "the workers are asked to save and end" in run.err(), WITHIN, run.err())
    assert run.launchers[0].wait(WITHIN) == 0, run.err()
    assert run.launchers[2].wait(WITHIN) == 0, run.err(2)
    print({step: [*losses(alone)[step], *found] for step, found in losses(output).items()}, file=sys.stderr)
    assert [len(found) for found in losses(output).values()] == [1] * STEPS, "no step was made twice"
    assert last(output) == STEPS
    four, two, four_again = runs(output)
    require_continued(training, output, alone, [(four, two, 2), (two, four_again, 4)])


def test_a_killed_rank_costs_the_steps_since_the_last_save(training: Training, tmp_path: Path) -> None:
    """And what was made universal is what DeepSpeed's own converter makes of the same step, alone."""
    alone = training.made_alone()
    output = tmp_path / "output"
    run = training.run(output, 0.5, options=UCP)
    makes(run, output, 6)
    os.kill(ranks(run)[1], signal.SIGKILL)
    until(lambda: last(output, "ucp.txt"), WITHIN, run.err())
    step = runs(output)[0] / f"checkpoint-{last(output, 'ucp.txt')}"
    assert (step / "latest_universal").read_text() == "ucp"
    assert run.wait(WITHIN) == [0], run.err()
    assert min(step for step, found in losses(output).items() if len(found) > 1) > SAVE_STEPS, "not from the beginning"
    require_same_as_deepspeed(step, tmp_path / "own" / "ucp")
    first, second = runs(output)
    require_continued(training, output, alone, [(first, second, 2)])


def require_continued(training: Training, output: Path, alone: Path, changes: list[tuple[Path, Path, int]]) -> None:
    """The curve is that of an undisturbed run. Not so with stage 3, where DeepSpeed's own load of a universal checkpoint gives all groups
    of parameters the settings of the first, and one count of Adam's steps, which each of them then counts on: there it is what
    DeepSpeed makes of the same step in a world of the same size, in a job without Troupe. `changes`: runs, and how many ranks the
    second has."""
    if training.stage < 3:
        require_same_curve(output, alone)
        return
    for before, after, world in changes:
        step, ours = int((before / "ucp.txt").read_text()), losses_of(after)
        theirs = made_by_deepspeed(training, before / f"checkpoint-{step}", world)
        assert min(ours) == step + 1
        assert ours == {step: theirs[step] for step in ours}


def made_by_deepspeed(training: Training, step: Path, world: int) -> dict[int, float]:
    """From this step on: with its own converter and its own load."""
    place = training.directory / f"deepspeed-{step.name}-{world}"
    copy = place / step.name
    shutil.copytree(step, copy, ignore=shutil.ignore_patterns("ucp", "latest_universal", "troupe-*"))
    converted_by_deepspeed(copy, copy / "ucp")
    (copy / "latest_universal").write_text("ucp")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    environment = {name: value for name, value in (os.environ | paced(0)).items() if "TROUPE" not in name and name != "PYTHONPATH"}
    words = training.words(place / "output", use_flash_ckpt="false", resume_from_checkpoint=copy)
    said = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, timeout=WITHIN, check=False)
    assert said.returncode == 0, said.stderr[-4000:]
    [run] = runs(place / "output")
    return losses_of(run)


def losses_of(run: Path) -> dict[int, float]:
    return {step: loss for step, [loss] in losses(run.parent, [run]).items()}


def converted_by_deepspeed(step: Path, output: Path) -> None:
    [files] = step.glob("global_step*")
    converter = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
    said = subprocess.run(
        [*converter, "--input_folder", str(files), "--output_folder", str(output)],
        env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr


def require_same_as_deepspeed(step: Path, own: Path) -> None:
    converted_by_deepspeed(step, own)
    names = sorted(path.relative_to(own) for path in own.rglob("*.pt"))
    assert names == sorted(path.relative_to(step / "ucp") for path in (step / "ucp").rglob("*.pt"))
    for name in names:
        theirs, ours = (torch.load(above / name, map_location="cpu", weights_only=False) for above in (own, step / "ucp"))
        same(ours, theirs, str(name))
