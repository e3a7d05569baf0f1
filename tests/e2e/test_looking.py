"""actor-shell stacks: what all ranks do, asked for by hand, while they train or hang; and a master that begins late."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import ROOT, Start
from launchers import Launcher, Run, actor_launcher, free_port, freeze, until
from test_crashes import kill_supervisor
from test_hangs import CULPRIT, NEVER, SCRIPT, WITHIN, WORK, Job, train, verdicts

__all__ = ["train"]  # the fixture

SHELL = Path(actor_launcher().program).with_name("actor-shell")
MASTER = re.compile(r"--master (\S+:\d+)")
WRITTEN = re.compile(r"stacks of (\d) of (\d) ranks: (\S+)/py_stack\.svg and cpp_stack\.svg")


@pytest.fixture(autouse=True)
def only_ours(launcher: Launcher) -> None:
    if launcher.is_torchrun:
        pytest.skip("torchrun has no shell")


def master_of(run: Run) -> str:
    return until(lambda: MASTER.search(run.err()), WITHIN, "the master's address")[1]


def ask(run: Run, *options: str) -> subprocess.Popen[str]:
    words = [str(SHELL), "stacks", f"--master={master_of(run)}", *options]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(asked: subprocess.Popen[str]) -> tuple[str, Path]:
    """What is said, and the directory."""
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0, err
    return out, Path(WRITTEN.search(out)[3])


def refused(asked: subprocess.Popen[str]) -> str:
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, out) == (1, "")
    (line,) = err.splitlines()
    return line


def test_of_a_healthy_job_and_then_of_one_that_hangs(train) -> None:
    job = train()
    job.trained(40)
    told, directory = answer(ask(job.run))
    assert told.startswith("stacks of 4 of 4 ranks: ") and told.count("\n") == 1
    for picture in ("py_stack.svg", "cpp_stack.svg"):
        assert (directory / picture).read_text().rstrip().endswith("</svg>")
    assert any("main@" in line for line in (directory / "py_stack").read_text().splitlines())
    # The same in the terminal, and as a document.
    told, second = answer(ask(job.run, "--text"))
    assert second.name == str(int(directory.name) + 1)
    assert re.search(r"^ +main \(\S*hanging\.py:[\d/]+\)", told, re.M), told
    document = ask(job.run, "--json")
    said = json.loads(document.communicate(timeout=60)[0])
    assert (said["schema"], said["stacks"]["ranks"], said["stacks"]["missing"]) == ("troupe.stacks/1", "0-3", [])
    steps = job.run.out().count("step ")
    job.trained(steps + 20)
    assert verdicts(job.run) == []
    # Requests cost a hang nothing, and its pictures lie beside theirs.
    job.begin("deadlock")
    assert "(lock_twice)" in job.sentence()
    hang = directory.with_name("4")
    until((hang / "stacks.json").exists, WITHIN, job.run.err())
    assert "lock_twice" in (hang / "py_stack").read_text()
    told, _ = answer(ask(job.run, "--text"))
    assert re.search(rf"^ *\+ rank {CULPRIT}, 1 thread$", told, re.M), told
    assert "lock_twice (" in told


def test_where_nothing_is_watched_and_a_rank_is_stopped(train) -> None:
    """To ask is to say that one wants to know: `off` is about what is done without being asked."""
    job = train("--hang-action=off")
    job.trained(20)
    os.kill(job.ranks()[CULPRIT], signal.SIGSTOP)
    told, directory = answer(ask(job.run, "--text"))
    assert re.search(rf"^rank {CULPRIT}: T \(stopped\), ", told, re.M), told
    assert (directory / "py_stack.svg").exists()


def test_of_two_nodes_and_of_one_that_does_not_answer(start: Start, tmp_path: Path) -> None:
    worker = [str(SCRIPT), str(tmp_path), str(NEVER), str(WORK)]
    run = start(worker, nodes=2, procs=2, environment={"PYTHONPATH": str(ROOT / "python")})
    Job(run, tmp_path).trained(10)
    assert answer(ask(run))[0].startswith("stacks of 4 of 4 ranks: ")
    freeze(run.supervisor(1))
    try:
        told, directory = answer(ask(run))
    finally:
        os.kill(run.supervisor(1), signal.SIGCONT)
    assert told.splitlines()[0].startswith("stacks of 2 of 4 ranks: ")
    assert told.splitlines()[1:] == [
        "nothing of ranks 2-3",
        "missing of ranks 2-3: node node-1 did not answer within 5.7 s",
    ]
    document = json.loads((directory / "stacks.json").read_text())
    assert (document["ranks"], document["absent_ranks"]) == ("0-1", "2-3")
    assert answer(ask(run))[0].startswith("stacks of 4 of 4 ranks: ")


def test_while_no_generation_runs_one_line_says_so(shell: Start, tmp_path: Path) -> None:
    run = shell("exit 0", tmp_path, port=free_port(), options=["--nnodes=2"])  # the other does not come
    line = refused(ask(run))
    assert line == "actor-shell: no stacks: no generation runs, so there are no processes to look at"


@pytest.mark.long
def test_a_restarted_master_names_the_rank_that_stands_still(train) -> None:
    """It was sealed under the master before it: nothing but the journal says which ranks there are."""
    job = train()
    job.trained(40)
    kill_supervisor(job.run)
    steps = job.run.out().count("step ")
    job.trained(steps + 40)
    pid = job.begin("stop")
    begun = time.monotonic()
    assert re.match(
        rf"ranks 0, 1, 3 wait in all_reduce #\d+ of group default_pg for rank {CULPRIT}, which has been stopped "
        rf"\(SIGSTOP\) for .* s: kill -CONT {pid} lets it go on",
        job.sentence(),
    )
    print(f"named {time.monotonic() - begun:.1f} s after it was seen to stop")
    job.is_shown("main")
