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


@dataclass(frozen=True)
class Build:
    """An interpreter as one of the usual ways to build it leaves it."""

    program: Path
    version: str  # "3.8.18"
    home: str = ""  # its prefix, if it cannot find that by itself


def asked(program: Path, what: str) -> str:
    """What an expression with `sys` and `sysconfig` is to an interpreter; empty if it does not run."""
    said = subprocess.run(
        [program, "-c", f"import sys, sysconfig; print({what})"], capture_output=True, text=True
    )
    return said.stdout.strip()


def installed_builds() -> list[Build]:
    """Of Python 3.8 to 3.14: those of the system, of pyenv and of TROUPE_PYTHONS."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [Path("/usr/bin/python3"), *map(Path, interpreters())]
    places += sorted(pyenv.glob("versions/3.*/bin/python3"))
    found = {}
    for place in places:
        program = place.resolve()
        version = asked(program, "'.'.join(map(str, sys.version_info[:3]))")
        if version and 8 <= int(version.split(".")[1]) <= 14:
            found[program] = Build(program, version)
    return list(found.values())


def linked(build: Build, into: Path, name: str, *, stripped: bool) -> Build | None:
    """The same with its library inside, as Debian's, conda's, uv's and manylinux' are; None where the parts are missing."""
    config = Path(asked(build.program, "sysconfig.get_config_var('LIBPL')"))
    minor = ".".join(build.version.split(".")[:2])
    archive, main = config / f"libpython{minor}.a", config / "python.o"
    if not (archive.exists() and main.exists() and shutil.which("gcc")):
        return None
    into.mkdir(parents=True)
    needs = asked(build.program, "' '.join(map(sysconfig.get_config_var, ('LIBS', 'SYSLIBS')))").split()
    line = ["gcc", *(["-s"] if stripped else []), "-Wl,-export-dynamic", "-o", into / name, main, archive, *needs, "-lm"]
    done = subprocess.run(line, capture_output=True, text=True)
    return Build(into / name, build.version, asked(build.program, "sys.prefix")) if done.returncode == 0 else None


def usual_builds(into: Path) -> list[Build]:
    found = []
    for n, build in enumerate(installed_builds()):
        minor = ".".join(build.version.split(".")[:2])
        # `trainer`: what a program that embeds Python is called.
        ways = (("whole", f"python{minor}", False), ("stripped", "trainer", True))
        more = [linked(build, into / f"{n}/{how}", name, stripped=s) for how, name, s in ways]
        found += [build, *filter(None, more)]
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
