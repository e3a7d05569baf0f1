"""What is recorded as text: how a job looks in a terminal when it is well and when it is not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .terminal import Terminal, until

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e"))

from memory_group import MIB, MemoryGroup

MEMORY = 200  # MiB: a launcher and two interpreters have room, what a worker hoards has not
LINES = 50


@dataclass(frozen=True)
class Screen:
    rows: list[str]
    code: int  # of the command


@dataclass(frozen=True)
class Scene:
    name: str
    title: str
    words: str  # what the reader sees
    play: Callable[[int], Screen]  # in a terminal of so many columns


def fresh_job() -> None:
    """An empty job directory but for the scripts, and a home without a token."""
    shutil.rmtree(machine.HOME / ".config", ignore_errors=True)
    for old in machine.JOB.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for script in ("scripts/recording/train.py", "deploy/examples/ddp.py"):
        shutil.copy(machine.CHECKOUT / script, machine.JOB)


@contextmanager
def terminal(columns: int, host: str = "node0") -> Iterator[Terminal]:
    with Terminal(columns, LINES, host) as shown:
        yield shown


def of_command(command: str) -> Callable[[int], Screen]:
    def play(columns: int) -> Screen:
        with terminal(columns) as shown:
            shown.run(command)
            return seen(shown)

    return play


def seen(shown: Terminal) -> Screen:
    """Without the prompt that waits at the end."""
    rows = shown.rows()
    return Screen(rows[:-1] if rows[-1] == "$" else rows, shown.last_code())


def out_of_memory(columns: int) -> Screen:
    with MemoryGroup.made() as group:
        if group is None:
            raise RuntimeError("no memory control group can be made here")
        with terminal(columns) as shown:
            (group.path / "cgroup.procs").write_text(str(shown.shell()))
            group.limit(MEMORY * MIB)
            shown.run("actor-launcher --nproc-per-node 2 train.py 20 memory")
            if not group.kills():
                raise RuntimeError("the kernel killed no worker for lack of memory")
            return seen(shown)


def interrupted(columns: int) -> Screen:
    with terminal(columns) as shown:
        ended = shown.start("actor-launcher --nproc-per-node 2 train.py 100")
        until(lambda: shown.shows("step 4 of 100"), "a few steps")
        shown.press("C-c")
        until(ended, "the end of the job")
        return seen(shown)


def node_lost(columns: int) -> Screen:
    """The terminal of the node that stays; the other's launcher is killed."""
    command = "actor-launcher --nnodes 1:2 --rdzv-endpoint node0:29400 --nproc-per-node 2 {}train.py 14"
    subprocess.run(["actor-launcher", "--new-token"], check=True, capture_output=True, env=machine.environment())
    with terminal(columns) as shown, terminal(columns, "node1") as other:
        ended = shown.start(command.format("--node-rank 0 "))
        other.start(command.format("--node-rank 1 "))
        until(lambda: shown.shows("step 6 of 14"), "a few steps of both nodes")
        for pid in children(other.shell()):
            os.kill(pid, signal.SIGKILL)
        until(ended, "the end of the job")
        return seen(shown)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


SCENES = (
    Scene(
        "good",
        "A good run",
        "`deploy/examples/ddp.py`: DistributedDataParallel with two workers.",
        of_command("actor-launcher --nproc-per-node 2 ddp.py checkpoints 200"),
    ),
    Scene(
        "crash",
        "A crash",
        "The script raises an exception in each of its lives, so that the one restart does not help.",
        of_command("actor-launcher --nproc-per-node 2 --max-restarts 1 train.py 20 crash"),
    ),
    Scene(
        "memory",
        "Out of memory",
        f"The shell is in a memory control group of {MEMORY} MiB, as a container is. A worker takes more.",
        out_of_memory,
    ),
    Scene("interrupt", "Ctrl-C", "Ctrl-C is pressed once, after the fourth step.", interrupted),
    Scene(
        "node-lost",
        "A node is lost",
        "Two nodes that have the same token; the second's launcher is killed with SIGKILL. The first node's terminal:",
        node_lost,
    ),
    Scene(
        "many",
        "64 workers",
        "One of the 64 raises an exception in its first life. `--tee 3` puts the rank before each line.",
        of_command("actor-launcher --nproc-per-node 64 --max-restarts 3 --log-dir logs --tee 3 train.py 8 crash-once"),
    ),
)
