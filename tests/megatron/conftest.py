"""Jobs whose workers have Megatron-LM."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Not the folder above: this one would be taken for a part of the package megatron.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from frameworks import Start, launcher, pytest_addoption, start

import few_ranks  # isort: skip  # needs the paths of the line above

QUIET = {"PYTHONWARNINGS": "ignore"}  # Megatron says much about what a CPU has not
os.environ.update(QUIET)
os.environ.setdefault("OMP_NUM_THREADS", "1")
few_ranks.PATIENCE = 300  # the first ranks wait for the imports
few_ranks.context.set_forkserver_preload(["torch.distributed", "troupe.checkpoint", "tiny_gpt", "megatron_imported"])

__all__ = ["Start", "launcher", "pytest_addoption", "start"]


@pytest.fixture
def worker_environment() -> dict[str, str]:
    return QUIET
