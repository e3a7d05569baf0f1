"""Runs one command line under torchrun and under ours, and says what came of each in the same words."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchers import TAG, base_environment, until

Act = Callable[["Side"], None]


@dataclass
class Side:
    """One launcher process, its streams in files below `directory`."""

    directory: Path
    pid: int = 0
    code: int | None = None

    def ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def end(self) -> None:
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            until(self.ended, 60, "a killed launcher is gone")

    @property
    def out(self) -> str:
        return (self.directory / "out").read_text(errors="replace")

    @property
    def err(self) -> str:
        return (self.directory / "err").read_text(errors="replace")


def start(
    program: Callable[[], int | None], side: Side, environment: dict[str, str], stdin: str
) -> Side:
    """`program` replaces or ends a forked child; what it returns is its exit code."""
    side.directory.mkdir(parents=True)
    (side.directory / "in").write_text(stdin)
    side.pid = os.fork()
    if side.pid:
        return side
    code: int | None = 70
    try:
        os.setsid()
        os.chdir(side.directory)
        for fd, name, how in (
            (0, "in", os.O_RDONLY),
            (1, "out", os.O_WRONLY),
            (2, "err", os.O_WRONLY),
        ):
            os.dup2(os.open(name, how | os.O_CREAT | os.O_APPEND), fd)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
        os.environ.clear()
        for name in ("COLUMNS", "LINES"):  # readline's, which pytest loads, set behind Python's back
            os.unsetenv(name)
        os.environ.update(environment)
        tempfile.tempdir = None  # asks TMPDIR again
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
        code = program()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def torchrun(arguments: list[str]) -> Callable[[], None]:
    """torchrun's own main in a fork of this process, which has torch loaded: saves two seconds each."""
    from torch.distributed.run import main

    return lambda: main(arguments)


def ours(launcher: Path, arguments: list[str]) -> Callable[[], None]:
    return lambda: os.execve(launcher, ["actor-launcher", *arguments], os.environ)


@dataclass
class Case:
    """One command line: options, then the worker. Both sides run in a directory of their own."""

    options: list[str]
    worker: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    nodes: int = 1
    of_node: list[list[str]] = field(default_factory=list)  # what each node is told besides
    act: Act = lambda side: None


def play(
    launcher: Path | None, case: Case, directory: Path, port: int, tag: str, within: float = 120
) -> dict[str, Any]:
    """Runs the case under `launcher`, or under torchrun without one; what came of it."""
    inherited = {k: v for k, v in base_environment().items() if not k.startswith("PET_")}
    temporary = directory / "temporary"
    temporary.mkdir(parents=True)
    environment = inherited | {TAG: tag, "TMPDIR": str(temporary)} | case.environment
    options = [a.replace("PORT", str(port)) for a in case.options]

    def program(node: int) -> Callable[[], None]:
        own = case.of_node[node] if case.of_node else []
        arguments = [*options, *own, *case.worker]
        return ours(launcher, arguments) if launcher else torchrun(arguments)

    sides = [
        start(program(node), Side(directory / f"node-{node}"), environment, case.stdin)
        for node in range(case.nodes)
    ]
    try:
        case.act(sides[0])
        until(lambda: all(side.ended() for side in sides), within, f"{case.options} ends")
    finally:
        for side in sides:
            side.end()
    # Which process became which node is not promised.
    return {
        "exit": [side.code for side in sides],
        "workers": workers(directory),
        "logs": logs(directory),
        "out": sorted(lines(side.out) for side in sides),
        "err": sorted(lines("".join(worker_lines(side.err))) for side in sides),
        "summary": [summary(side.err) for side in sides],
        "own error file": own_error_file(directory),
    }


def lines(text: str) -> list[str]:
    """Workers' lines interleave as they please; each one's own order stays."""
    return sorted(
        text.splitlines(keepends=True), key=lambda line: re.split(r" (?=apple|pear|ün)", line)[0]
    )


def worker_lines(text: str) -> list[str]:
    return [line for line in text.splitlines(keepends=True) if re.search(r"\berr \d+ ", line)]


def workers(directory: Path) -> dict[str, Any]:
    found = {f.stem: json.loads(f.read_text()) for f in directory.glob("node-*/*.[0-9]*.json")}
    for seen in found.values():
        seen["environment"] = environment_of(seen)
        seen["directory"] = normal(seen["directory"] + "/")
    return found


# Where it is, is the launcher's own business; that it is there is not.
BY_MEANING = {"MASTER_PORT", "TMPDIR"}


def environment_of(seen: dict[str, Any]) -> dict[str, str]:
    told = seen["environment"]
    assert 1024 <= int(told["MASTER_PORT"]) < 65536
    return {name: normal(value) for name, value in told.items() if name not in BY_MEANING}


def normal(text: str) -> str:
    """Without what differs from run to run: directories' random parts, pids, times, host names."""
    text = re.sub(r"\S*/(node-\d+)(?=/)", r"node", text)
    text = re.sub(r"\S*/temporary/(torchelastic_\w+/job|troupe_job)_\w+/", "TEMPORARY/", text)
    text = re.sub(r"(job|none)_(\d{8}-\d{6}_[^/]+_)?\w{6,8}/", r"\1_RANDOM/", text)
    text = re.sub(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"(pid: |by PID )\d+", r"\1PID", text)
    return re.sub(r"host      : \S+", "host      : HOST", text)


def logs(directory: Path) -> dict[str, Any]:
    tree = {}
    for file in sorted(directory.glob("node-*/logs/**/*")):
        name = normal(str(file.relative_to(directory)) + "/").rstrip("/")
        if file.name.startswith("journal.sqlite"):
            continue  # the master's
        if file.is_symlink():
            continue  # latest
        if file.is_dir():
            tree[name] = None
        elif file.name == "error.json":
            tree[name] = error(file)
        else:
            tree[name] = lines(file.read_text())
    return tree


def error(file: Path) -> Any:
    content = json.loads(file.read_text())
    extra = content["message"]["extraInfo"]
    assert abs(int(extra.pop("timestamp")) - file.stat().st_mtime) < 60
    extra["py_callstack"] = extra["py_callstack"].splitlines()[-1]
    return content


def own_error_file(directory: Path) -> Any:
    file = directory / "node-0" / "own.json"
    return error(file) if file.exists() else None


def summary(text: str) -> str | None:
    found = re.search(r"^=+\n.* FAILED\n.*^=+$", text, re.MULTILINE | re.DOTALL)
    return normal(found[0]) if found else None
