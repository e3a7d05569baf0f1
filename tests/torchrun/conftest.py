"""What the conformance suites share: the launcher under test, and programs that end with their test."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from launchers import PYTHON, TAG, base_environment, end_tagged

Python = Callable[..., subprocess.Popen]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--launcher",
        default=str(ROOT / "build/release/bin/actor-launcher"),
        help="path of the actor-launcher to test",
    )


@pytest.fixture(scope="session")
def launcher(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("--launcher")).absolute()  # by its name, a link


@pytest.fixture
def tag() -> str:
    """Marks every process of one test; whatever is left of them ends with it."""
    tag = uuid.uuid4().hex
    yield tag
    end_tagged(tag)


@pytest.fixture
def python(launcher: Path, tag: str, tmp_path: Path) -> Python:
    """Starts Python with arguments; `troupe` is importable and finds the launcher under test."""

    def started(*arguments: object, **environment: str) -> subprocess.Popen:
        ours = {
            "PYTHONPATH": f"{ROOT / 'python'}",
            "TROUPE_BIN_DIR": str(launcher.parent),
            "TMPDIR": str(tmp_path),
            TAG: tag,
        }
        return subprocess.Popen(
            [str(PYTHON), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=base_environment() | ours | environment,
        )

    return started
