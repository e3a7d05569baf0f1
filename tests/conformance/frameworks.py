"""Tests of a framework that is installed in an environment of its own: jobs under actor-launcher whose workers run the
interpreter that pytest runs in. A conftest imports all of this, and says more of the workers' environment by `worker_environment`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
os.environ.setdefault("TROUPE_LIB_DIR", str(ROOT / "build/release/libexec/troupe"))
os.environ.setdefault("TROUPE_BIN_DIR", str(ROOT / "build/release/bin"))

from launchers import Launcher, Run, launcher_named

Start = Callable[..., Run]

WORKERS = {
    "PYTHON_EXEC": sys.executable,
    "PYTHONPATH": str(ROOT / "python"),
    "OMP_NUM_THREADS": "1",
    "PET_RDZV_CONF": "keep_alive_interval=60,keep_alive_max_attempt=1",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--launcher", default="actor-launcher", help="actor-launcher, or the path of a build of it")
    parser.addoption("--kills", type=int, default=3, help="how often each training is killed")


@pytest.fixture
def launcher(request: pytest.FixtureRequest) -> Launcher:
    return launcher_named(request.config.getoption("--launcher"))


@pytest.fixture
def worker_environment() -> dict[str, str]:
    return {}


@pytest.fixture
def start(launcher: Launcher, worker_environment: dict[str, str], tmp_path: Path) -> Start:
    """Starts a job; what is left of it ends with the test."""
    jobs: list[Run] = []

    def started(worker: list[str], **how: object) -> Run:
        directory = tmp_path / f"run-{len(jobs)}"
        directory.mkdir()
        how["environment"] = WORKERS | worker_environment | how.get("environment", {})
        jobs.append(Run(launcher, worker, directory, **how))
        return jobs[-1].__enter__()

    yield started
    for job in jobs:
        job.__exit__()
