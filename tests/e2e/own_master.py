"""A master of its own and nodes by their names: each of them can be ended and started again, and has a file for what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conftest import CALM
from launchers import TAG, Launcher, base_environment, end_tagged, free_port, lend_niceness, until

WITHIN = 60.0
TOKEN = "0123456789abcdef0123456789abcdef"


class OwnMaster:
    """`options`: of the master. It keeps a journal, which its successor takes up."""

    def __init__(self, launcher: Launcher, directory: Path, nodes: int, *options: str) -> None:
        self.launcher = launcher
        self.directory = directory
        self.size = f"--nnodes={nodes}"
        self.options = options
        self.port = free_port()
        self.tag = uuid.uuid4().hex
        self.nodes: dict[str, subprocess.Popen] = {}
        self.lives = 0
        self.start_master()

    def start_master(self) -> None:
        self.lives += 1
        program = Path(self.launcher.program).with_name("actor-master")
        command = [str(program), "-v", f"--listen=127.0.0.1:{self.port}", self.size]
        command += ["--rdzv-conf=" + CALM["PET_RDZV_CONF"], f"--journal={self.directory}/journal"]
        command += ["--max-restarts=9", *self.options]
        self.process = self._started(command, f"master-{self.lives}", {})
        until(lambda: f":{self.port}" in self.err(), WITHIN, "a master that listens")

    def end_master(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def start_node(
        self,
        name: str,
        worker: Sequence[str],
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [self.launcher.program, self.size, f"--node-name={name}", "--max-restarts=9"]
        command += [f"--rdzv-endpoint=127.0.0.1:{self.port}", *options, *worker]
        self.nodes[name] = self._started(
            command, f"node-{name}", CALM | {"WHERE": name} | dict(environment or {})
        )

    def lose_node(self, name: str) -> None:
        """The launcher with all that it holds, its memory for images among it."""
        gone = self.nodes.pop(name)
        os.kill(gone.pid, signal.SIGKILL)
        gone.wait()

    def _started(
        self, command: Sequence[str], name: str, environment: Mapping[str, str]
    ) -> subprocess.Popen:
        with (self.directory / f"{name}.err").open("ab") as said:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=base_environment() | environment | {"TROUPE_TOKEN": TOKEN, TAG: self.tag},
                start_new_session=True,
            )
        lend_niceness(started.pid)
        return started

    def err(self, node: str | None = None) -> str:
        """What a node has said; what the master has, in its last life."""
        name = f"node-{node}" if node else f"master-{self.lives}"
        return (self.directory / f"{name}.err").read_text(errors="replace")

    def all_said(self) -> str:
        return "\n".join(f"{f.name}:\n{f.read_text(errors='replace')}" for f in self.directory.glob("*.err"))

    def until(self, condition: Callable[[], object], what: str, within: float = WITHIN) -> object:
        try:
            return until(condition, within, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.all_said()}") from None

    def end(self) -> None:
        """All nodes, and the master, have succeeded."""
        for name, node in self.nodes.items():
            assert node.wait(WITHIN) == 0, f"node {name}: {self.all_said()}"
        assert self.process.wait(WITHIN) == 0, self.all_said()

    def close(self) -> None:
        end_tagged(self.tag)
        for process in (*self.nodes.values(), self.process):
            process.wait()
