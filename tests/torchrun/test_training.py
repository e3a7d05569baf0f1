"""Training scripts as PyTorch's users write them, but for how they leave: the same result under torchrun and ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launchers import TAG, TORCHRUN, base_environment

SCRIPTS = Path(__file__).with_name("training")


@pytest.mark.parametrize("script", ["ddp.py", *(pytest.param(script, marks=pytest.mark.long) for script in ("fsdp.py", "with_accelerate.py"))])
def test_ends_with_the_same_loss_and_weights(
    launcher: Path, tmp_path: Path, tag: str, script: str
) -> None:
    results = {}
    for name, program in (("theirs", TORCHRUN.program), ("ours", str(launcher))):
        options = ["--standalone", "--nproc-per-node=2"]
        report = tmp_path / name
        line = [program, *options, str(SCRIPTS / script), str(report)]
        run = subprocess.run(
            line,
            env=base_environment() | {TAG: tag, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        results[name] = report.read_text()
    assert results["ours"] == results["theirs"]
    assert results["ours"]
