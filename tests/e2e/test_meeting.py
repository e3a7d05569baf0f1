"""Where the nodes of a job meet, and which peers are let in."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CALM
from launchers import Launcher, Run, free_port, until

WITHIN = 60.0
TOKEN = "0123456789abcdef0123456789abcdef"
WORKER = 'echo "rank $RANK of $WORLD_SIZE, secrets: $(env | grep -c -e TROUPE_TOKEN -e {token})"'

Nodes = Callable[..., list[Run]]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


# A container may have no IPv6 at all.
HOSTS = ["127.0.0.2", "localhost", *(["[::1]", "[0:0::1]"] if has_ipv6() else [])]


@pytest.fixture
def nodes(launcher: Launcher, tmp_path: Path) -> Nodes:
    """Starts one launcher for each set of options and variables; what is left ends with the test."""
    script = tmp_path / "worker.sh"
    script.write_text("#!/bin/sh\n" + WORKER.format(token=TOKEN) + "\n")
    script.chmod(0o755)
    started: list[Run] = []

    class Node(Launcher):
        def command(self, worker: list[str], **how: object) -> list[str]:
            return [self.program, "-v", "--no-python", *how["options"], *worker]

    def start(*each: tuple[list[str], dict[str, str]]) -> list[Run]:
        for options, environment in each:
            directory = tmp_path / f"node-{len(started)}"
            directory.mkdir()
            who = Node(launcher.name, launcher.program)
            seen = CALM | environment
            run = Run(who, [str(script)], directory, options=options, environment=seen)
            started.append(run.__enter__())
        return started

    yield start
    for run in started:
        run.__exit__()


def all_trained(runs: list[Run]) -> None:
    for run in runs:
        assert run.wait(WITHIN) == [0], run.err()
    said = sorted(line for run in runs for line in run.out().splitlines() if "rank" in line)
    assert said == [f"rank {n} of {len(runs)}, secrets: 0" for n in range(len(runs))]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("token", [None, TOKEN], ids=["token of the machine", "token given"])
def test_nodes_meet_at_any_address_of_this_machine(
    nodes: Nodes, host: str, token: str | None
) -> None:
    environment = {"TROUPE_TOKEN": token} if token else {}
    options = ["--nnodes=2", f"--rdzv-endpoint={host}:{free_port()}"]
    all_trained(nodes((options, environment), (options, environment)))


def test_nodes_find_each_other_by_what_slurm_says(nodes: Nodes, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)

    def task(node: int) -> tuple[list[str], dict[str, str]]:
        return ["--nnodes=auto"], {
            "TROUPE_TOKEN_FILE": str(token),
            "SLURM_JOB_ID": str(free),
            "SLURM_JOB_NODELIST": "127.0.0.[2-3]",
            "SLURM_NNODES": "2",
            "SLURM_NODEID": str(node),
        }

    free = free_port()
    runs = nodes(task(1), task(0))
    all_trained(runs)
    for run, node in zip(runs, (1, 0), strict=True):
        place = f"the job meets at 127.0.0.2:{15000 + free % 10000} (SLURM_JOB_NODELIST)"
        assert f"{place}; node rank {node}" in run.err()


@pytest.mark.parametrize(
    ("stranger", "told_there", "told_here"),
    [
        (
            {"TROUPE_TOKEN": TOKEN[::-1]},
            "its job token is another one than ours",
            "its job token is another one than ours",
        ),
        ({}, "this end needs the same", "the peer closed the connection"),
    ],
    ids=["another token", "no token"],
)
def test_a_node_without_the_token_is_turned_away(
    nodes: Nodes, stranger: dict[str, str], told_there: str, told_here: str
) -> None:
    where = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
    conf = "--rdzv-conf=read_timeout=0.5"
    [master] = nodes((["--nnodes=2", "--node-rank=0", where], {"TROUPE_TOKEN": TOKEN}))
    until(lambda: "1 of 2" in master.err() or "waiting" in master.err(), WITHIN, "a master")
    _, other = nodes((["--nnodes=2", "--node-rank=1", where, conf], stranger))
    assert other.wait(WITHIN) == [1]
    assert told_there in other.err()
    until(lambda: told_here in master.err(), WITHIN, master.err())
    assert TOKEN not in master.err() + other.err()


def test_launchers_that_were_told_another_size_are_turned_away(nodes: Nodes) -> None:
    where = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
    [master] = nodes((["--nnodes=2", "--node-rank=0", where], {}))
    until(lambda: "node-0" in master.err(), WITHIN, "a master")
    _, other = nodes((["--nnodes=1:2", "--node-rank=1", where], {}))
    assert other.wait(WITHIN) == [1]
    told = "this master's job has 2 nodes, the node was told 1 to 2 nodes (--nnodes)"
    assert told in other.err()
    until(lambda: f"node node-1 was refused: {told}" in master.err(), WITHIN, master.err())


def test_a_token_file_that_others_can_read_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    [run] = nodes(([f"--token-file={token}"], {}))
    assert run.wait(WITHIN) == [2]
    assert f"the token file {token} may be read or written by others (mode 0644)" in run.err()


@pytest.mark.parametrize("turn", range(3))
def test_a_node_that_waits_for_others_ends_when_it_is_told_to(nodes: Nodes, turn: int) -> None:
    """It said goodbye, came back as a new node, and the master that it runs itself waited for that one."""
    endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
    [run] = nodes((["--nnodes=2", "--node-rank=0", endpoint], {}))
    until(lambda: "joined (1 of 2)" in run.err(), WITHIN, "the node")
    run.launchers[0].send_signal(signal.SIGINT)
    assert run.wait(5) == [130], run.err()
    assert "trying again" not in run.err()


def test_two_nodes_meet_by_the_token_file_that_was_made_for_them(
    nodes: Nodes, launcher: Launcher, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    made = subprocess.run(
        [launcher.program, "--new-token"], env=home, capture_output=True, text=True, timeout=WITHIN
    )
    token = tmp_path / ".config/troupe/token"
    assert made.returncode == 0 and str(token) in made.stdout, made.stderr
    assert token.read_text().strip() not in made.stdout
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout
    if not own.strip():
        pytest.skip("this machine has no address but the loopback interface's")
    endpoint = f"--rdzv-endpoint={own.split()[0]}:{free_port()}"
    first, second = nodes(*((["--nnodes=2", endpoint], home) for _ in range(2)))
    all_trained([first, second])
    line = next(l for run in (first, second) for l in run.err().splitlines() if "join with" in l)
    assert f"(and the token file {token}): actor-launcher -v --no-python --nnodes=2 {endpoint}" in line
