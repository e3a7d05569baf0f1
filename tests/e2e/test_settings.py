"""Settings that a person changes while workers run: --auto_tunning and actor-shell set."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Start
from launchers import Launcher, actor_launcher, until

SHELL = Path(actor_launcher().program).with_name("actor-shell")
# The rules of DLRover's loader: what it writes when it is made, and when it takes a size.
LOADER = """
import json, os, sys, time
from pathlib import Path
folder, file = Path(sys.argv[1]), os.environ["DLROVER_PARAL_CONFIG_PATH"]
settings = json.load(open(file))
settings["dataloader"]["batch_size"] = settings.get("batch_size", 0) or 4
json.dump(settings, open(file, "w"), indent=4)
(folder / "reads").touch()
while True:
    loader = json.load(open(file))["dataloader"]
    if loader["version"] > 0:
        break
    time.sleep(0.02)
(folder / "size.part").write_text(f"{loader['batch_size']} {loader['last_batch_size']} {loader['version']}")
(folder / "size.part").rename(folder / "size")
"""


@pytest.fixture(autouse=True)
def only_ours(launcher: Launcher) -> None:
    if launcher.is_torchrun:
        pytest.skip("torchrun has no settings")


def set_size(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(SHELL), "set", *map(str, words)], capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("names_file", [False, True])
def test_a_person_s_batch_size_reaches_a_loader_that_runs(
    start: Start, tmp_path: Path, names_file: bool
) -> None:
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    own = tmp_path / "settings.json"
    run = start(
        [str(script), str(tmp_path)],
        options=["--auto_tunning"],
        environment={"DLROVER_PARAL_CONFIG_PATH": str(own)} if names_file else {},
    )
    until((tmp_path / "reads").exists, 30, "the loader")
    words = ["batch-size=64", *(["--file", own] if names_file else [])]
    said = set_size(*words)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("batch size 64 after 4, version 1, in ")
    assert run.wait(30) == [0], run.err()
    assert (tmp_path / "size").read_text() == "64 4 1"
    assert own.exists() == names_file
    assert "actor-shell set batch-size=N changes it, and nothing else does" in run.err()


def test_without_such_a_job_nothing_is_set(tmp_path: Path) -> None:
    missing = set_size("batch-size=8", "--file", tmp_path / "none.json")
    assert (missing.returncode, missing.stderr) == (
        1,
        f"actor-shell: not set: {tmp_path}/none.json does not exist\n",
    )
    other = tmp_path / "other.json"
    other.write_text("[]")
    assert set_size("batch-size=8", "--file", other).returncode == 1
    assert other.read_text() == "[]" and os.listdir(tmp_path) == ["other.json"]
