#!/usr/bin/env python3
"""How soon a job has another size: a node dies, falls silent, is cut off, starts alone, or joins.

Two nodes with one worker each and `--nnodes=1:2`. What is measured ends with the first act of the
last worker of the new world. The workers do what gloo's do: they exit a moment after a peer's
process has gone. The partition needs root: each node is a machine of its own then (machines.py).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import TAG, Launcher, Run, base_environment, free_port, until
from machines import network

# Its first act is a line; then it watches the processes of its world.
WORKER = """import os, sys, time
started = time.monotonic_ns()
path, rank, world = sys.argv[1], os.environ["RANK"], int(os.environ["WORLD_SIZE"])
with open(path, "a") as file:
    file.write(f"{rank} {world} {started} {os.getpid()}\\n")
def mine():
    lines = [line.split() for line in open(path)][-world:]
    whole = len(lines) == world and all(int(line[1]) == world for line in lines)
    return [int(line[3]) for line in lines] if whole else []
def gone(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
while not (pids := mine()):
    time.sleep(0.002)
while not any(gone(pid) for pid in pids):
    time.sleep(0.002)
time.sleep(0.021)
os._exit(1)
"""
PATIENCE = 90  # of anything that a launcher does at all


@dataclass(frozen=True)
class Start:
    rank: int
    world: int
    when_ns: int
    pid: int


class Job:
    """A job of at most two nodes, and what its workers said."""

    def __init__(self, launcher: Launcher, directory: Path, options: tuple[str, ...] = ()) -> None:
        self.stamps = directory / "stamps"
        self.stamps.touch()
        script = directory / "worker.py"
        script.write_text(WORKER)
        if launcher.is_torchrun:
            # Else no second node can join a running job: both agents fail after 60 s.
            environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        else:
            environment = {}
        self.run = Run(
            launcher,
            [str(script), str(self.stamps)],
            directory,
            nodes="1:2",
            restarts=100,
            options=options,
            environment=environment,
            ranked=False,
        )

    def starts(self) -> list[Start]:
        return [Start(*map(int, line.split())) for line in self.stamps.read_text().splitlines()]

    def world_after(self, when_ns: int, size: int, within: float = PATIENCE) -> Start:
        """The last start of the first whole world of that size that begins after that moment."""

        def whole() -> Start | None:
            found = [s for s in self.starts() if s.when_ns > when_ns and s.world == size]
            return found[size - 1] if len(found) >= size else None

        return until(whole, within, f"a world of {size} under {self.run.launcher.name}")


@contextlib.contextmanager
def job(launcher: Launcher, nodes: int, options: tuple[str, ...] = ()) -> Iterator[Job]:
    """With so many nodes started, one after the other so that the first is the master's."""
    with tempfile.TemporaryDirectory() as directory:
        one = Job(launcher, Path(directory), options)
        try:
            one.run.port = free_port()
            for node in range(nodes):
                one.run.start_node(node)
                if node == 0 and nodes > 1:
                    until(lambda: port_taken(one.run.port), 60, "the first node listens")
            yield one
        finally:
            one.run.__exit__()


def port_taken(port: int) -> bool:
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted) and fields[3] == "0A":
                return True
    return False


def ms(start_ns: int, end: Start) -> float:
    return (end.when_ns - start_ns) / 1e6


def node_dies(launcher: Launcher) -> float:
    """kill -9 of a launcher and its worker, until the other node's worker runs again, alone."""
    with job(launcher, 2) as one:
        one.world_after(0, 2)
        time.sleep(1)  # whatever a launcher still does at the beginning is over
        victim = one.run.launchers[1]
        worker = next(s.pid for s in one.starts()[-2:] if parent(s.pid) == victim.pid)
        killed = time.monotonic_ns()
        os.kill(victim.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        return ms(killed, one.world_after(killed, 1))


def node_freezes(launcher: Launcher) -> float:
    """SIGSTOP of a node supervisor; its worker stays, as it would on a machine that cannot be reached."""
    with job(launcher, 2) as one:
        one.world_after(0, 2)
        time.sleep(1)
        frozen = time.monotonic_ns()
        os.kill(one.run.supervisor(1), signal.SIGSTOP)
        return ms(frozen, one.world_after(frozen, 1))


def starts_alone(launcher: Launcher) -> float:
    """From exec to the worker's first act, without another node, beyond an interpreter's own."""
    began = time.monotonic_ns()
    with job(launcher, 1) as one:
        return ms(began, one.world_after(0, 1))


def node_joins(launcher: Launcher) -> float:
    """A second launcher is started beside a running job of one, until both train together."""
    with job(launcher, 1, ("--rdzv-conf=last_call_timeout=1",)) as one:
        one.world_after(0, 1)
        time.sleep(1)
        began = time.monotonic_ns()
        one.run.start_node(1)
        return ms(began, one.world_after(began, 2, 20))


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_cut_off(launcher: Launcher) -> float:
    """The cable is pulled, and the worker on the other machine trains on. Ours only: an agent of
    torchrun that misses another one's heartbeats does nothing about it."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        one = Job(launcher, directory)
        token = directory / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(16) + "\n")
        with network(2, directory / "hosts") as net:
            try:
                for machine in range(2):
                    options = [f"--token-file={token}"]
                    command = launcher.command(
                        one.run.worker, node=None, nodes="1:2", port=29400, options=options
                    )
                    command = [w.replace("127.0.0.1", net.address(0)) for w in command]
                    with open(directory / f"node-{machine}.err", "wb") as err:
                        one.run.launchers.append(
                            subprocess.Popen(
                                net.command(machine, command),
                                stdin=subprocess.DEVNULL,
                                stdout=err,
                                stderr=err,
                                env=base_environment() | {TAG: one.run.tag},
                            )
                        )
                one.world_after(0, 2)
                time.sleep(1)
                net.cut_off(1)
                pulled = time.monotonic_ns()
                return ms(pulled, one.world_after(pulled, 1))
            finally:
                one.run.__exit__()


# ---- All of them ----


@dataclass(frozen=True)
class Case:
    name: str
    measure: Callable[[Launcher], float]
    goal_ms: float
    torchrun_too: bool = True
    root: bool = False


CASES = [
    Case("a node is killed → the other's worker runs again", node_dies, 1000),
    Case("a node supervisor is stopped (SIGSTOP) → the same", node_freezes, 2000, torchrun_too=False),
    Case("the cable is pulled → the same", is_cut_off, 2000, torchrun_too=False, root=True),
    Case("start alone → first act", starts_alone, 1000),
    Case("a second node joins → both train", node_joins, 500),
]


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peer-rounds", type=int, default=2, help="torchrun's; default 2")
    parser.add_argument("--case", default="", metavar="WORD", help="only those named so")


def main() -> None:
    chosen = harness.options(__doc__, 10, declare)
    cases = [case for case in CASES if chosen.case in case.name]
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    missing: list[str] = []
    for case in cases:
        if case.root and os.geteuid() != 0:
            missing.append(f"not root, so not measured: {case.name}")
            continue
        for number in range(chosen.rounds):
            for one in chosen.launchers:
                if one.is_torchrun and (not case.torchrun_too or number >= chosen.peer_rounds):
                    continue
                if f"{one.name}: {case.name}" in missing:
                    continue
                harness.progress(f"{case.name}: {one.name}, {number + 1}")
                try:
                    samples[case.name][one.name].append(case.measure(one))
                except TimeoutError as late:
                    missing.append(f"{one.name}: {case.name}")
                    harness.progress(f"  {late}")

    ours, peer = harness.peer_of(chosen.launchers)
    rows, data, figures = [], {}, []
    for case in cases:
        by_launcher = samples[case.name]
        summaries = {name: Summary.of(values) for name, values in by_launcher.items() if values}
        shown = [str(summaries.get(one.name, "–")) for one in chosen.launchers]
        rows.append(
            [case.name, f"{case.goal_ms:g}", *shown, ratio(summaries.get(ours), summaries.get(peer))]
        )
        data[case.name] = {name: vars(summary) for name, summary in summaries.items()}
        if ours in summaries:
            name = f"--nnodes=1:2: {case.name}"
            figures.append(Figure(name, "ms", summaries[ours], peer or "", summaries.get(peer)))
    harness.report(
        "elastic",
        f"Two nodes, --nnodes=1:2, ms: median (p10 – p90) of {chosen.rounds} ({chosen.peer_rounds})",
        ["", "goal", *(one.name for one in chosen.launchers), "peer : ours"],
        rows,
        data,
        [*missing, "limit: a closed connection is seen in 0.1 ms, two processes start in 1 ms; but a "
         "pause of 1 s is to be survived,\nand a beat of 250 ms before it, so silence is no death "
         "before 1,250 ms."],
        figures,
    )


if __name__ == "__main__":
    main()
