"""Interpreters that hang, and the program that reads their stacks."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator

import pytest

FRAME = re.compile(r"    (?P<function>.+) \((?P<source>.*?)(?::(?P<line>\d+))?\)")
THREAD = re.compile(r"Thread (?P<id>\d+) \((?P<name>.*)\): (?P<state>.*)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stacks", required=True, help="the program troupe-dump of a build")


def interpreters() -> list[str]:
    found = [sys.executable]
    found += [path for path in os.environ.get("TROUPE_PYTHONS", "").split(":") if path]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "python" in metafunc.fixturenames:
        metafunc.parametrize("python", interpreters())


@dataclass(frozen=True)
class Frame:
    function: str
    source: str
    line: int


@dataclass
class Thread:
    id: int
    state: str
    python: list[Frame] = field(default_factory=list)
    native: list[Frame] = field(default_factory=list)

    @property
    def holds_lock(self) -> bool:
        return "holds Python's lock" in self.state


@dataclass
class Dump:
    text: str
    code: int
    errors: str
    threads: list[Thread]

    def with_function(self, name: str) -> Thread:
        return next(
            t for t in self.threads if any(f.function.endswith(name) for f in t.python + t.native)
        )


def parse(text: str, code: int, errors: str) -> Dump:
    threads: list[Thread] = []
    frames: list[Frame] = []
    for line in text.splitlines():
        if found := THREAD.fullmatch(line):
            threads.append(Thread(int(found["id"]), found["state"]))
            frames = threads[-1].python
        elif line == "  native:":
            frames = threads[-1].native
        elif found := FRAME.fullmatch(line):
            frames.append(Frame(found["function"], found["source"], int(found["line"] or 0)))
    return Dump(text, code, errors, threads)


@pytest.fixture
def stacks(request: pytest.FixtureRequest) -> Callable[..., Dump]:
    program = request.config.getoption("--stacks")

    def run(*arguments: object) -> Dump:
        done = subprocess.run(
            [program, *map(str, arguments)], capture_output=True, text=True, timeout=60
        )
        return parse(done.stdout, done.returncode, done.stderr)

    return run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Runs a script, and waits until it has printed a line."""
    running: list[subprocess.Popen[str]] = []

    def begin(python: str, script: str) -> subprocess.Popen[str]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(script), encoding="utf-8")
        process = subprocess.Popen(
            [python, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        return process

    yield begin
    for process in running:
        # With its children, which hold its streams open.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        pytest.skip("py-spy is not installed")
    return found
