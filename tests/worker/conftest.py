"""Training processes as the launcher starts them: a page and its descriptor, the hooks on PYTHONPATH, perhaps a channel."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE_BYTES = 32768


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", default=str(ROOT / "build/release"), help="where it was built")
    parser.addoption("--python", default=sys.executable, help="with another version of PyTorch")


class Worker:
    """One process, its page, and what it has printed."""

    def __init__(self, build: Path, command: list[str], environment: dict[str, str], hooks: bool, pass_fds: tuple[int, ...]) -> None:
        self.build = build
        self.page = os.memfd_create("troupe-progress")
        os.ftruncate(self.page, PAGE_BYTES)
        libexec = build / "libexec/troupe"
        set_by_launcher = {
            "TROUPE_PROGRESS_FD": str(self.page),
            "TROUPE_HOOKS": "debug" if hooks else "0",
            "PYTHONPATH": os.pathsep.join([str(libexec / "hooks"), str(ROOT / "tests/worker")]),
            "TROUPE_LIB_DIR": str(libexec),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # What the hooks take out of the environment, for a script that hands it on all the same.
        kept = {f"KEPT_{name}": value for name, value in set_by_launcher.items()}
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **set_by_launcher, **kept, **environment},
            pass_fds=[self.page, *pass_fds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seen(self) -> dict:
        """Its page, as the node supervisor reads it."""
        probe = [str(self.build / "tests/page_probe"), str(self.page)]
        return json.loads(subprocess.run(probe, pass_fds=[self.page], capture_output=True, check=True).stdout)

    def line(self) -> str:
        """What it printed next; it waits then for `go`."""
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=30)[1]
        return line.strip()

    def go(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> str:
        out, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, errors
        assert "troupe:" not in errors, errors
        return out


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("--build")).resolve()


@pytest.fixture
def workers(request: pytest.FixtureRequest, build: Path, tmp_path: Path):
    """Starts `world` ranks of a script's text."""
    started: list[Worker] = []
    python = request.config.getoption("--python")

    def start(
        text: str,
        world: int = 1,
        environment: dict[str, str] | None = None,
        *,
        hooks: bool = True,
        flags: tuple[str, ...] = (),
        pass_fds: tuple[int, ...] = (),
    ) -> list[Worker]:
        script = tmp_path / f"script_{len(started)}.py"
        script.write_text(textwrap.dedent(text))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = []
        for rank in range(world):
            own = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "TROUPE_GENERATION": "7",
            }
            ranks.append(
                Worker(build, [python, *flags, str(script)], {**own, **(environment or {})}, hooks, pass_fds)
            )
        started.extend(ranks)
        return ranks

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        os.close(each.page)
