"""What a user may do wrong is one line, and loses nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import Start
from sft import SCRIPT, arguments, resumed, runs, tracked


def test_ranks_of_another_launcher_are_refused_before_the_first_step(data: Path, tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", SCRIPT]
    ended = subprocess.run(
        [sys.executable, *command, *arguments(data, tmp_path / "out", 4, 2)], capture_output=True, text=True, timeout=400, check=False
    )
    assert ended.returncode != 0
    assert "start the workers with actor-launcher, which takes torchrun's arguments" in ended.stderr
    assert not list(tmp_path.glob("out/v*/checkpoint-*"))


def test_one_process_needs_no_launcher(data: Path, tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, *arguments(data, tmp_path / "out", 4, 2)]
    subprocess.run(command, check=True, timeout=400)
    [run] = runs(tmp_path / "out")
    assert tracked(run) == 4
    weights = run / "checkpoint-4/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    more = [*command[:2], *arguments(data, tmp_path / "out", 8, 2)]
    ended = subprocess.run(more, check=True, timeout=400, capture_output=True, text=True)
    assert f"step 4 in {run} is not resumed from, and stays as it is: {weights}: " in ended.stderr
    assert resumed(ended.stderr) == [(0, 2)]
    assert tracked(runs(tmp_path / "out")[1]) == 8


def test_without_room_on_the_disk_training_goes_on_with_what_is_complete(start: Start, data: Path, tmp_path: Path) -> None:
    """Of step 4: in its place there is a file, so that no directory can be made."""
    output = tmp_path / "out"
    command = [SCRIPT, *arguments(data, output, 6, 2, add_version="false")]
    output.mkdir()
    (output / ".troupe").mkdir()
    (output / ".troupe/steps").mkdir()
    (output / ".troupe/steps/4").mkdir()  # where the mark of the step would be
    run = start(command, procs=2)
    assert run.wait(400) == [0], run.err()[-4000:]
    assert tracked(output) == 6
    assert "step 4 is not complete" in run.err() + run.out()
    complete = sorted(int(path.parent.name.split("-")[1]) for path in output.glob("checkpoint-*/troupe-manifest.json"))
    assert complete == [2, 6]
