"""Machines with several interfaces: network namespaces joined by cables. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CALM
from launchers import PYTHON, Launcher, Run, alive, until

WITHIN = 60.0
TOKEN = "0123456789abcdef0123456789abcdef"

# Says where it finds the workers' store, and that it is there.
WORKER = f"""#!/bin/sh
exec {PYTHON} -ISc '
import os, socket
where = os.environ["MASTER_ADDR"]
socket.create_connection((where, int(os.environ["MASTER_PORT"])), timeout=20).close()
print("rank", os.environ["RANK"], "finds", where)
'
"""


def ip(arguments: str) -> None:
    done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {arguments}: {done.stderr.strip()}"


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """Two of them, joined by two cables: near0 to far0 and near1 to far1."""
    names = [f"networks-{os.getpid()}-{i}" for i in range(2)]
    try:
        for name in names:
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
        for cable in range(2):
            ends = f"near{cable} netns {names[0]} type veth peer far{cable} netns {names[1]}"
            ip(f"link add {ends}")
            for i, end in enumerate(("near", "far")):
                ip(f"-n {names[i]} addr add 10.{cable}.0.{i + 1}/24 dev {end}{cable}")
                # The same on both cables, as if a switch had made them.
                ip(f"-n {names[i]} addr add fe80::{i + 1}/64 dev {end}{cable} nodad")
                ip(f"-n {names[i]} link set {end}{cable} up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextlib.contextmanager
def job(
    machines: list[str], directory: Path, launcher: Launcher, options: list[list[str]]
) -> Iterator[list[Run]]:
    """A job with a launcher on each machine."""
    worker = directory / "worker.sh"
    worker.write_text(WORKER)
    worker.chmod(0o755)

    class Inside(Launcher):
        def command(self, command: list[str], **how: object) -> list[str]:
            inside = ["ip", "netns", "exec", how["options"][0]]
            return [*inside, self.program, "-v", "--no-python", *how["options"][1:], *command]

    with contextlib.ExitStack() as all_runs:
        runs = []
        for machine, own in zip(machines, options, strict=True):
            place = directory / machine
            place.mkdir()
            run = Run(
                Inside(launcher.name, launcher.program),
                [str(worker)],
                place,
                options=[machine, "--nnodes=2", *own],
                environment=CALM | {"TROUPE_TOKEN": TOKEN},
            )
            runs.append(all_runs.enter_context(run))
        yield runs


def told_at_the_end(runs: list[Run]) -> list[str]:
    """What its workers said."""
    for run in runs:
        assert run.wait(WITHIN) == [0], "\n".join(r.err() for r in runs)
    return sorted(line for run in runs for line in run.out().splitlines() if "finds" in line)


def said(machines: list[str], directory: Path, launcher: Launcher, options: list[list[str]]) -> list[str]:
    with job(machines, directory, launcher, options) as runs:
        return told_at_the_end(runs)


def test_the_local_address_says_over_which_cable(
    machines: list[str], tmp_path: Path, launcher: Launcher
) -> None:
    near, far = machines
    # The master has an address of no cable, and only a peer that comes from the second cable's address
    # finds the way to it: routing by source, as machines with several networks have it.
    ip(f"-n {near} addr add 10.9.0.1/32 dev lo")
    ip(f"-n {far} route add unreachable 10.9.0.1")
    ip(f"-n {far} route add 10.9.0.1 via 10.1.0.1 table 9")
    ip(f"-n {far} rule add from 10.1.0.2 lookup 9")
    where = "--rdzv-endpoint=10.9.0.1:29400"
    own = [[where, "--node-rank=0", "--local-addr=10.1.0.1"], [where, "--local-addr=10.1.0.2"]]
    told = said(machines, tmp_path, launcher, own)
    assert told == ["rank 0 finds 10.1.0.1", "rank 1 finds 10.1.0.1"]


def test_nodes_meet_at_link_local_addresses(
    machines: list[str], tmp_path: Path, launcher: Launcher
) -> None:
    own = [
        [f"--rdzv-endpoint=[fe80::1%{end}1]:29400", f"--node-rank={node}"]
        for node, end in enumerate(("near", "far"))
    ]
    told = said(machines, tmp_path, launcher, own)
    assert told == ["rank 0 finds fe80::1%near1", "rank 1 finds fe80::1%far1"]


def test_a_launcher_that_starts_before_its_cable_is_plugged_in_is_found_by_the_others(
    machines: list[str], tmp_path: Path, launcher: Launcher
) -> None:
    _, far = machines
    for cable in range(2):
        ip(f"-n {far} link set far{cable} down")
    where = "--rdzv-endpoint=10.0.0.1:29400"
    # The late one has group rank 0: the workers of both look for the store at its address.
    own = [
        [where, "--node-rank=1", "--rdzv-conf=is_host=1"],
        [where, "--node-rank=0", "--rdzv-conf=is_host=0"],
    ]
    with job(machines, tmp_path, launcher, own) as runs:
        waits = "waiting for the master at 10.0.0.1:29400"
        until(lambda: waits in runs[1].err(), WITHIN, "the late node's word")
        ip(f"-n {far} link set far0 up")
        told = told_at_the_end(runs)
    assert told == ["rank 0 finds 10.0.0.2", "rank 1 finds 10.0.0.2"]


def test_the_endpoints_name_may_resolve_late(
    machines: list[str], tmp_path: Path, launcher: Launcher
) -> None:
    hosts = [Path(f"/etc/netns/{machine}/hosts") for machine in machines]
    try:
        for file in hosts:
            file.parent.mkdir(parents=True)
            file.write_text("127.0.0.1 localhost\n")
        own = [["--master-addr=head.job", f"--node-rank={node}"] for node in range(2)]
        with job(machines, tmp_path, launcher, own) as runs:
            waits = "waiting for the name 'head.job' to be resolved"
            until(lambda: waits in runs[0].err(), WITHIN, "a node that waits for the name")
            for file in hosts:  # the same file: it is mounted where the launchers look
                with file.open("a") as more:
                    more.write("10.0.0.1 head.job\n")
            told = told_at_the_end(runs)
            assert "this node runs the job's master at head.job:29500" in runs[0].err()
            assert "this node runs no master" in runs[1].err()
        assert told == ["rank 0 finds 10.0.0.1", "rank 1 finds 10.0.0.1"]
    finally:
        for file in hosts:
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                file.parent.rmdir()


@pytest.mark.parametrize("standbys", [0, 1])
def test_a_node_that_is_cut_off_trains_on_unless_a_standby_takes_its_place(
    machines: list[str], tmp_path: Path, launcher: Launcher, standbys: int
) -> None:
    near, far = machines
    pids = tmp_path / "pids"
    worker = tmp_path / "trains.sh"
    worker.write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 600\n")
    worker.chmod(0o755)

    class Inside(Launcher):
        def command(self, command: list[str], **how: object) -> list[str]:
            machine, program, *own = how["options"]
            beside = str(Path(self.program).with_name(program))
            return ["ip", "netns", "exec", machine, beside, "--nnodes=1", *own, *command]

    def run(machine: str, program: str, *own: str, command: list[str]) -> Run:
        place = tmp_path / f"{machine}-{program}"
        place.mkdir()
        told = {"TROUPE_TOKEN": TOKEN, "PET_RDZV_CONF": ""}
        who, options = Inside(launcher.name, launcher.program), [machine, program, *own]
        return jobs.enter_context(Run(who, command, place, options=options, environment=told))

    where = "--rdzv-endpoint=10.0.0.1:29400"
    with contextlib.ExitStack() as jobs:
        master = run(near, "actor-master", "--listen=10.0.0.1:29400", command=[])
        until(lambda: "waiting for" in master.err(), WITHIN, "a master")
        node = run(far, "actor-launcher", where, "--no-python", command=[str(worker)])
        until(lambda: pids.exists() and pids.read_text().endswith("\n"), WITHIN, "a worker")
        first = int(pids.read_text())
        for _ in range(standbys):
            standby = run(near, "actor-launcher", where, "--no-python", command=[str(worker)])
            until(lambda: "stands by" in standby.err(), WITHIN, "a standby")
        cut = time.monotonic()
        ip(f"-n {far} link set far0 down")
        if standbys:
            until(lambda: len(pids.read_text().split()) == 2, WITHIN, "the standby's worker")
            until(lambda: not alive(first), WITHIN, f"the end of the first\n{node.err()}")
            assert time.monotonic() - cut < 30
            why = "may have formed a world without this one"
            until(lambda: why in node.err(), WITHIN, f"the reason\n{node.err()}")
        else:
            until(lambda: time.monotonic() > cut + 25, WITHIN, "the time in which it would end")
            assert alive(first)
