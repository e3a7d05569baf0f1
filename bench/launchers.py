"""The launchers that the demo, the tests and the benchmarks drive: ours and torchrun.

The command lines differ in a few options. Everything else is the same for both: nodes are launcher
processes on this machine, their output goes to files, and every process of a run carries a tag in
its environment. Descendants inherit it, however they detach, so a run can say what it left behind.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv" / "bin" / "python"
TAG = "TROUPE_RUN_TAG"


@dataclass(frozen=True)
class Launcher:
    """One of the programs under comparison."""

    name: str
    program: str

    @property
    def is_torchrun(self) -> bool:
        return self.name == "torchrun"

    def command(
        self,
        worker: Sequence[str],
        *,
        node: int | None = 0,
        nodes: int | str = 1,
        procs: int = 1,
        restarts: int = 0,
        port: int | None = None,
        python: bool = True,
        options: Sequence[str] = (),
    ) -> list[str]:
        """The command line of one node, or of any (None); without a port, of a job that has only this node."""
        line = [self.program, f"--nproc-per-node={procs}", f"--max-restarts={restarts}"]
        if port is None:
            line.append("--standalone")
        else:
            line += [f"--nnodes={nodes}", f"--rdzv-endpoint=127.0.0.1:{port}"]
            if self.is_torchrun:
                line += ["--rdzv-backend=c10d", "--rdzv-id=job", "--local-addr=127.0.0.1"]
            elif node is not None:
                line.append(f"--node-rank={node}")
        if not python:
            line.append("--no-python")
        return [*line, *options, *worker]


TORCHRUN = Launcher("torchrun", str(ROOT / ".venv" / "bin" / "torchrun"))


def actor_launcher(
    program: str | os.PathLike = ROOT / "build/release/bin/actor-launcher",
) -> Launcher:
    return Launcher("actor-launcher", str(program))


def launcher_named(name: str) -> Launcher:
    """`torchrun`, `actor-launcher` (the release build), or the path of another build of ours, which is its name."""
    if name == TORCHRUN.name:
        return TORCHRUN
    return actor_launcher() if name == "actor-launcher" else Launcher(name, name)


def base_environment() -> dict[str, str]:
    """Both launchers start the same interpreter, and gloo stays on the loopback interface."""
    venv_first = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": venv_first,
        "PYTHON_EXEC": str(PYTHON),
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONFAULTHANDLER": "1",  # a worker that crashes says where
    }


def free_port() -> int:
    """A free port below the range from which the kernel gives ports, so that it stays free until it is used."""
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10_000, max(given, 20_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def until(condition: Callable[[], object], within: float, what: str) -> object:
    """The condition's first true value; its absence after `within` seconds is an error."""
    deadline = time.monotonic() + within
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether the process exists and has not ended; one that waits to be reaped has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def freeze(pid: int) -> None:
    """SIGSTOP, and all threads have stopped: on a busy machine some run on for a while after the signal."""
    os.kill(pid, signal.SIGSTOP)

    def states() -> set[str]:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}

    until(lambda: states() <= {"T", "t"}, 30, f"process {pid} has stopped")


def children(pid: int) -> dict[int, str]:
    """By number, with their names."""
    found = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    found[int(child)] = Path(f"/proc/{child}/comm").read_text().strip()
    return found


def control_group(pid: int | str = "self") -> Path | None:
    """The directory of a process's control group (version 2), if that is mounted."""
    own = [line[3:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line[:3] == "0::"]
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    points = [words[4] for words in mounts if words[words.index("-") + 1] == "cgroup2"]
    return Path(points[0] + own[0].rstrip("/")) if own and points else None


def control_groups_can_be_made() -> bool:
    """Whether launchers that are started here have one for their workers."""
    own = control_group()
    if own is None:
        return False
    trial = own / f"trial-{uuid.uuid4().hex}"
    try:
        trial.mkdir()
    except OSError:
        return False
    is_domain = (trial / "cgroup.type").read_text() == "domain\n"
    controllers = (trial / "cgroup.controllers").read_text().strip()
    can_be_killed = (trial / "cgroup.kill").exists()
    trial.rmdir()
    return is_domain and not controllers and can_be_killed


def processes_tagged(tag: str) -> Iterator[int]:
    wanted = f"{TAG}={tag}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:  # ended meanwhile, or belongs to another user
                continue
            if wanted in environment.split(b"\0") and alive(int(entry.name)):
                yield int(entry.name)


def processes_of(tag: str, directory: Path) -> set[int]:
    """The tagged ones, and those that work in the directory: environments can be cleared."""
    found = set(processes_tagged(tag))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(directory):
                    found.add(int(entry.name))
    return found


def end_tagged(tag: str) -> None:
    for _ in range(2):  # a child may be born meanwhile
        for pid in processes_tagged(tag):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def lend_niceness(pid: int) -> None:
    """Gives a process's session our own niceness: Linux may share processors between sessions first (autogroup)."""
    if niceness := os.nice(0):
        with contextlib.suppress(OSError):  # no such kernel, or not allowed
            Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


@dataclass
class Run:
    """One job: a launcher process per node. Leaving the context ends all that is left of it."""

    launcher: Launcher
    worker: Sequence[str]
    directory: Path
    nodes: int = 1
    procs: int = 1
    restarts: int = 0
    python: bool = True
    options: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)
    launchers: list[subprocess.Popen] = field(default_factory=list)
    port: int | None = None
    ranked: bool = True  # each launcher is told its node rank

    def __enter__(self) -> Run:
        if self.nodes > 1 and self.port is None:
            self.port = free_port()
        for node in range(self.nodes):
            self.start_node(node)
        return self

    def start_node(self, node: int) -> subprocess.Popen:
        command = self.launcher.command(
            self.worker,
            node=node if self.ranked else None,
            nodes=self.nodes,
            procs=self.procs,
            restarts=self.restarts,
            port=self.port,
            python=self.python,
            options=self.options,
        )
        with (
            open(self.directory / f"node-{node}.out", "wb") as out,
            open(self.directory / f"node-{node}.err", "wb") as err,
        ):
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=base_environment() | self.environment | {TAG: self.tag},
                start_new_session=True,
            )
        lend_niceness(started.pid)
        self.launchers.append(started)
        return started

    def __exit__(self, *_) -> None:
        end_tagged(self.tag)
        for launcher in self.launchers:
            launcher.wait()

    def part(self, name: str, node: int = 0) -> int | None:
        """One of a launcher's own processes: troupe-node, troupe-store, troupe-reaper."""
        found = children(self.launchers[node].pid).items()
        return next((pid for pid, what in found if what == name), None)

    def supervisor(self, node: int = 0) -> int:
        """The process that holds the node's link: torchrun itself, of ours the keeper's child."""
        if self.launcher.is_torchrun:
            return self.launchers[node].pid
        return until(lambda: self.part("troupe-node", node), 30, "a node supervisor")

    def leftovers(self) -> list[int]:
        """Every process of this run that still exists."""
        return sorted(processes_tagged(self.tag))

    def out(self, node: int = 0) -> str:
        return (self.directory / f"node-{node}.out").read_text(errors="replace")

    def err(self, node: int = 0) -> str:
        return (self.directory / f"node-{node}.err").read_text(errors="replace")

    def wait(self, within: float) -> list[int]:
        """The launchers' exit codes, in order of nodes."""
        deadline = time.monotonic() + within
        try:
            return [p.wait(max(0.0, deadline - time.monotonic())) for p in self.launchers]
        except subprocess.TimeoutExpired:
            said = "\n".join(f"node {n}:\n{self.err(n)}{self.out(n)}" for n in range(self.nodes))
            raise TimeoutError(f"the job did not end within {within:g} s\n{said}") from None
