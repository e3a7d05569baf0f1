"""What a build leaves, installed as people do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Nothing of the checkout may help what is installed.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", default=str(ROOT / "build/release"), help="where it was built")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("--build"))


@pytest.fixture(scope="session")
def wheels(build: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    into = tmp_path_factory.mktemp("wheel")
    made = subprocess.run(
        [ROOT / "scripts/wheel", build, into],
        check=True,
        capture_output=True,
        text=True,
        env={**BARE, "PYTHON": sys.executable},
    )
    return [Path(line) for line in made.stdout.splitlines()]


@pytest.fixture(scope="session")
def wheel(wheels: list[Path]) -> Path:
    return wheels[0]


def run(*command: object, **how: object) -> subprocess.CompletedProcess[str]:
    how = {"env": BARE, "capture_output": True, "text": True, "timeout": 120, **how}
    return subprocess.run([str(word) for word in command], **how)


def echo(launcher: object, *words: str) -> str:
    """What a job of one worker writes."""
    ended = run(*([launcher] if isinstance(launcher, Path) else launcher), "--standalone", "--no-python", "echo", *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
