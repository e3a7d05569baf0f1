"""actor-shell against real jobs: one tree, the dead and their reasons at once, filters, JSON, watching, finding the job."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Start
from launchers import Launcher, Run, actor_launcher, freeze, until

WAITS = """
echo $$ > "$1/pid-$RANK.part" && mv "$1/pid-$RANK.part" "$1/pid-$RANK-$TORCHELASTIC_RESTART_COUNT"
until [ -e "$1/enough" ]; do sleep 0.02; done
"""
SHELL = Path(actor_launcher().program).with_name("actor-shell")
SEEN_WITHIN = 0.1  # seconds from the kill to the question whose answer shows it


@pytest.fixture(autouse=True)
def only_ours(launcher: Launcher) -> None:
    if launcher.is_torchrun:
        pytest.skip("torchrun has no shell")


def look(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(SHELL), "tree", *map(str, arguments)],
        capture_output=True, text=True, timeout=30, env=os.environ | (environment or {}),
    )  # fmt: skip


def tree_of(run: Run, *arguments: object) -> dict:
    """The document's tree; asked of the job's master."""
    answer = look("--json", f"--master=127.0.0.1:{run.port}", *arguments)
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["schema"] == "troupe.tree/1"
    return document["tree"]


def rows(row: dict | None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Every row with the names from the master to it."""
    if row is None:
        return
    here = (*path, row["name"])
    yield here, row
    for child in row["children"]:
        yield from rows(child, here)


def pid(directory: Path, rank: int, restart: int = 0) -> int:
    file = directory / f"pid-{rank}-{restart}"
    until(file.exists, 30, f"rank {rank} of restart {restart}")
    return int(file.read_text())


def job(shell: Start, directory: Path, nodes: int = 2, procs: int = 2, restarts: int = 3) -> Run:
    run = shell(WAITS, directory, nodes=nodes, procs=procs, restarts=restarts)
    for rank in range(nodes * procs):
        pid(directory, rank)
    return run


def the_end(run: Run, directory: Path) -> None:
    (directory / "enough").touch()
    assert run.wait(30) == [0] * run.nodes, run.err()


def rank_rows(tree: dict, rank: int) -> list[dict]:
    return [row for path, row in rows(tree) if re.search(rf"\brank {rank}\b", row["name"] + row["phase"])]


def test_one_tree_leads_from_the_master_to_each_process_of_each_node(
    shell: Start, tmp_path: Path
) -> None:
    run = job(shell, tmp_path)
    tree = tree_of(run)
    assert tree["name"] == "master"
    paths = [path for path, row in rows(tree) if row["name"] == "node_supervisor"]
    assert sorted(paths) == [("master", "sessions", f"node-{n}", "node_supervisor") for n in range(2)]
    for rank in range(4):
        shown = [
            (path, row) for path, row in rows(tree) if f"pid {pid(tmp_path, rank)}" in row["phase"]
        ]
        assert len(shown) == 1, tree
        path, row = shown[0]
        assert path[:4] == ("master", "sessions", f"node-{rank // 2}", "node_supervisor")
        assert row["state"] == "running" and row["kind"] == "worker"
    assert not [row for _, row in rows(tree) if row["troubled"]]
    assert look(f"--master=127.0.0.1:{run.port}", "--troubled").stdout.startswith("no trouble in ")
    only = tree_of(run, "--node", "node-1")
    assert {path[2] for path, _ in rows(only) if len(path) > 2 and path[1] == "sessions"} == {"node-1"}
    assert {path[0] for path, _ in rows(tree_of(run, "--depth", 0))} == {"master"}
    the_end(run, tmp_path)


def test_a_killed_rank_is_seen_at_once_with_its_reason_and_the_restarts_used(
    shell: Start, tmp_path: Path
) -> None:
    run = job(shell, tmp_path)
    os.kill(pid(tmp_path, 3), signal.SIGKILL)
    killed = time.monotonic()

    def dead() -> list[dict]:
        return [
            row
            for _, row in rows(tree_of(run, "--troubled"))
            if row["last_end"] and row["last_end"]["bad"] and "SIGKILL" in row["last_end"]["why"]
        ]

    asked = killed
    while not (seen := dead()):
        asked = time.monotonic()
        assert asked < killed + SEEN_WITHIN, "a question this long after the kill shows it"
    assert {row["state"] for row in seen} <= {"ended", "down", "stopping"}
    pid(tmp_path, 3, restart=1)
    # The dead one stays visible beside those that replace it, and the job's budget tells of it.
    text = look(f"--master=127.0.0.1:{run.port}").stdout
    assert re.search(r"ended \d+m?s ago: .*signal 9 \(SIGKILL\)", text), text
    assert re.search(r"restarts 1/3|1 restarts? used", text), text
    the_end(run, tmp_path)


def test_a_node_that_does_not_answer_is_a_row_that_says_so(shell: Start, tmp_path: Path) -> None:
    run = job(shell, tmp_path)
    freeze(run.supervisor(1))
    try:
        troubled = tree_of(run, "--troubled")
    finally:
        os.kill(run.supervisor(1), signal.SIGCONT)
    silent = [path for path, row in rows(troubled) if row["state"] == "silent"]
    assert silent == [("master", "sessions", "node-1", "node_supervisor")]
    the_end(run, tmp_path)


def test_the_only_job_of_this_user_is_found_and_several_are_listed(
    shell: Start, launcher: Launcher, tmp_path: Path
) -> None:
    directories = [tmp_path / name for name in "ab"]
    for directory in directories:
        directory.mkdir()
    # Others may run jobs here; a network of our own would need rights that a test may not have.
    before = look("--depth", 0)
    first = job(shell, directories[0], nodes=1)
    found = look("--depth", 0)
    if before.returncode == 2 and "was found" in before.stderr:
        assert found.returncode == 0 and found.stdout.startswith("master "), found.stderr
    second = job(shell, directories[1], nodes=1)
    several = look()
    assert several.returncode == 2
    assert re.search(r"^actor-shell: \d+ jobs of this user .* --master HOST:PORT", several.stderr)
    listed = subprocess.run(
        [launcher.program.replace("actor-launcher", "troupe"), "ps", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = {one["master"]: one["doing"] for one in json.loads(listed.stdout)["jobs"]}
    assert len(seen) >= 2 and any("runs on 1 node" in doing for doing in seen.values()), seen
    for run, directory in zip([first, second], directories):
        the_end(run, directory)


def test_what_cannot_be_asked_is_one_line_and_an_exit_code(shell: Start, tmp_path: Path) -> None:
    away = look("--master=127.0.0.1:1")
    assert away.returncode == 1 and away.stdout == ""
    assert len(away.stderr.splitlines()) == 1 and "127.0.0.1:1" in away.stderr
    run = job(shell, tmp_path)
    other = look(f"--master=127.0.0.1:{run.port}", "--node", "node-7")
    assert other.returncode == 1 and "no node 'node-7'" in other.stderr
    the_end(run, tmp_path)


def read_terminal(master: int, seconds: float, until_text: str) -> str:
    """What the terminal was sent, until the text comes."""
    text, deadline = "", time.monotonic() + seconds
    while until_text not in text:
        left = deadline - time.monotonic()
        assert left > 0, f"{until_text!r} did not come: {text[-2000:]!r}"
        if select.select([master], [], [], left)[0]:
            text += os.read(master, 65536).decode(errors="replace")
    return text


def test_watching_fits_the_terminal_survives_the_master_and_ends_at_ctrl_c(
    shell: Start, tmp_path: Path
) -> None:
    run = job(shell, tmp_path, nodes=1)
    (found,) = [
        line for line in look("--json").stdout.splitlines() if '"troupe.tree/1"' in line
    ] or [None]
    if found is None:
        pytest.skip("other jobs of this user run on this machine")
    address = json.loads(found)["master"]
    master, terminal = pty.openpty()
    subprocess.run(["stty", "cols", "80", "rows", "36"], stdin=terminal, check=True)
    watching = subprocess.Popen(
        [str(SHELL), "tree", "--watch", "0.1", f"--master={address}"],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(terminal)
    try:
        drawn = read_terminal(master, 10, "gateway")
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).replace("\r", "").split("\n")
        assert max(map(len, lines)) <= 80, lines
        freeze(run.supervisor())
        read_terminal(master, 20, "away for")
        os.kill(run.supervisor(), signal.SIGCONT)
        read_terminal(master, 20, "rows, ")
        os.write(master, b"\x03")
        rest = read_terminal(master, 10, "\x1b[?1049l")
        assert watching.wait(10) == 0, rest
    finally:
        watching.kill()
        os.close(master)
    the_end(run, tmp_path)
