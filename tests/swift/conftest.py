"""Jobs that run ms-swift's own `swift sft` on a tiny model, with DLRover's names from Troupe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from frameworks import ROOT, Start, launcher, pytest_addoption, start

__all__ = ["Start", "data", "launcher", "pytest_addoption", "start"]

NAMES = ROOT / "python/dlrover_names"
PACKAGES = [ROOT / "python", NAMES, NAMES / "troupe_dlrover_names/path"]
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(map(str, PACKAGES)),
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
sys.path[1:1] = [*map(str, PACKAGES), str(ROOT / "deploy/examples")]
os.environ.update(ENVIRONMENT)


@pytest.fixture
def worker_environment() -> dict[str, str]:
    return ENVIRONMENT


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a model, and dialogues."""
    import swift_data

    directory = tmp_path_factory.mktemp("data")
    swift_data.main(directory)
    return directory
