"""Jobs whose workers have DeepSpeed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from frameworks import ROOT, WORKERS, Start, launcher, pytest_addoption, start

__all__ = ["ROOT", "WORKERS", "Start", "launcher", "pytest_addoption", "start"]


@pytest.fixture
def worker_environment() -> dict[str, str]:
    return {"DS_ACCELERATOR": "cpu"}
