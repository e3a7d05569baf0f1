"""What a build leaves, installed as people do it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
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


def packed(into: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """A wheel of another project, with `files`."""
    about = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = into / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for path, text in files.items():
            file.writestr(path, text)
        file.writestr(f"{about}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"]))
    return wheel


class Environment:
    """A new virtual environment."""

    def __init__(self, place: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        self.place, self.bin = place, place / "bin"

    def pip(self, *words: object) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python"]
        subprocess.run([*pip, *words], check=True, capture_output=True)

    def installed(self) -> dict[str, str]:
        """Versions by name."""
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python", "list", "--format=json"]
        said = subprocess.run(pip, check=True, capture_output=True, text=True)
        return {one["name"]: one["version"] for one in json.loads(said.stdout)}

    def install(self, *wheels: Path) -> None:
        self.pip("install", "-q", "--no-deps", "--no-index", *wheels)

    def python(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return run(self.bin / "python", *words, env={**BARE, **variables})

    def dlrover_run(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return run(self.bin / "dlrover-run", *words, env={**BARE, **variables})
