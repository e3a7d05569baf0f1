"""Real launchers, real processes, real PyTorch; no sleeping and hoping.

Every test waits for a condition with a deadline. Every process of a run is tagged (see
bench/launchers.py), so "nothing is left" means all descendants, however they detached.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from launchers import Launcher, Run, launcher_named

Start = Callable[..., Run]

# A machine that stalls for some seconds costs no node its place, but where a test is about that.
CALM = {"PET_RDZV_CONF": "keep_alive_interval=60,keep_alive_max_attempt=1"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--launcher",
        default="actor-launcher",
        help="actor-launcher, torchrun, or the path of a build of ours",
    )


@pytest.fixture
def launcher(request: pytest.FixtureRequest) -> Launcher:
    return launcher_named(request.config.getoption("--launcher"))


@pytest.fixture
def start(launcher: Launcher, tmp_path: Path) -> Start:
    """Starts a job under the launcher; what is left of it ends with the test."""
    jobs: list[Run] = []

    def started(worker: list[str], **how: object) -> Run:
        directory = tmp_path / f"run-{len(jobs)}"
        directory.mkdir()
        how["environment"] = CALM | how.get("environment", {})
        jobs.append(Run(how.pop("launcher", launcher), worker, directory, **how))
        return jobs[-1].__enter__()

    yield started
    for job in jobs:
        job.__exit__()


@pytest.fixture
def shell(start: Start, tmp_path: Path) -> Start:
    """Starts a job whose worker is a few lines of shell: fast, and no interpreter of ours."""

    def started(script: str, *arguments: object, **how: object) -> Run:
        # One for each job: those of another may be starting it just now.
        worker = tmp_path / f"worker-{uuid.uuid4().hex}.sh"
        worker.write_text(f"#!/bin/sh\n{script}\n")
        worker.chmod(0o755)
        return start([str(worker), *map(str, arguments)], python=False, **how)

    return started
