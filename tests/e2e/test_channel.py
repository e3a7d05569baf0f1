"""The workers' channel to their node supervisor: the first step is told once, and a new supervisor is dialled."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Start
from launchers import Run, until
from test_crashes import kill_supervisor

WITHIN = 60.0
# Makes steps until it is told that it is enough; its first life ends after some of them.
SCRIPT = """
import os, sys, time
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
first_life = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
n = 0
while not os.path.exists(sys.argv[1]):
    n += 1
    optimizer.zero_grad()
    model(torch.rand(8, 4)).sum().backward()
    optimizer.step()
    if n == 20 and first_life and sys.argv[2] == "fails" and os.environ["RANK"] == "1":
        sys.exit(7)
    time.sleep(0.02)
"""
AFTER_FAILURE = re.compile(r"the first step was made (\d+.\d) s after the failure")
AFTER_START = re.compile(r"the first step was made (\d+.\d) s after the workers were started")
ON_CHANNEL = re.compile(r"rank (\d) \(pid \d+\) is on the channel")


def trains(start: Start, tmp_path: Path, how: str, *options: str) -> Run:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    environment = {"PYTHONPATH": str(ROOT / "python")}
    worker = [str(script), str(tmp_path / "enough"), how]
    return start(worker, options=list(options), procs=2, environment=environment)


def ends(run: Run, tmp_path: Path) -> None:
    (tmp_path / "enough").touch()
    assert run.wait(WITHIN) == [0], run.err()
    assert run.leftovers() == []


def test_after_a_failure_the_first_step_is_told_once(start: Start, tmp_path: Path) -> None:
    run = trains(start, tmp_path, "fails", "--max-restarts=1")
    found = until(lambda: AFTER_FAILURE.search(run.err()), WITHIN, f"the first step\n{run.err()}")
    assert 0 < float(found[1]) < WITHIN
    ends(run, tmp_path)
    assert run.err().count("the first step was made") == 1, run.err()


def test_without_a_failure_it_is_for_a_closer_look(start: Start, tmp_path: Path) -> None:
    run = trains(start, tmp_path, "works", "-v")
    until(lambda: AFTER_START.search(run.err()), WITHIN, f"the first step\n{run.err()}")
    ends(run, tmp_path)
    assert run.err().count("the first step was made") == 1, run.err()


def test_processes_dial_the_next_supervisor(start: Start, tmp_path: Path) -> None:
    run = trains(start, tmp_path, "works", "-vv")

    def hellos(of_each: int) -> bool:
        ranks = ON_CHANNEL.findall(run.err())
        return all(ranks.count(rank) >= of_each for rank in "01")

    until(lambda: hellos(1), WITHIN, f"the processes\n{run.err()}")
    until(lambda: AFTER_START.search(run.err()), WITHIN, f"the first step\n{run.err()}")
    kill_supervisor(run)
    until(lambda: hellos(2), WITHIN, f"the processes again\n{run.err()}")
    ends(run, tmp_path)
    assert run.err().count("the first step was made") == 1, run.err()
    assert "is turned away" not in run.err()


@pytest.mark.long
def test_without_the_watchdog_the_job_trains(start: Start, tmp_path: Path) -> None:
    ends(trains(start, tmp_path, "works", "--hang-action=off"), tmp_path)


# Each rank waits until it is told to go on; rank 1 then crashes, with another thread that waits.
CRASH = """
import ctypes, faulthandler, os, sys, threading, time
how, go = sys.argv[1:]
if "before" in how:
    faulthandler.enable()
import torch
if "after" in how:
    faulthandler.enable()

def waits_beside():
    threading.Event().wait()

def parse():
    if "abort" in how:
        os.abort()
    ctypes.string_at(0)

threading.Thread(target=waits_beside, daemon=True).start()
while not os.path.exists(go):
    time.sleep(0.01)
if os.environ["RANK"] == "1":
    parse()
time.sleep(600)
"""
HIT = re.compile(r"rank 1 was hit by (SIG\w+)( in \S+)?( at)? (\S+:\d+) \((\w+)\); all its threads: (\S+)")


def crashes(start: Start, tmp_path: Path, how: str, *options: str, is_watched: bool = True) -> Run:
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    go = tmp_path / "go"
    worker = [str(script), how, str(go)]
    environment = {"PYTHONFAULTHANDLER": ""}  # the script enables it, or nothing does
    run = start(worker, options=["-vv", *options], procs=2, environment=environment)
    if is_watched:
        until(lambda: set(ON_CHANNEL.findall(run.err())) == {"0", "1"}, WITHIN, f"the processes\n{run.err()}")
    go.touch()
    assert run.wait(WITHIN) == [1], run.err()
    assert run.leftovers() == []
    return run


@pytest.mark.parametrize("how", ["alone", *(pytest.param(how, marks=pytest.mark.long) for how in ("before", "after"))])
def test_stacks_of_a_crash_are_kept(start: Start, tmp_path: Path, how: str) -> None:
    run = crashes(start, tmp_path, how, f"--log-dir={tmp_path / 'logs'}", "--redirects=2")
    hit = HIT.search(run.err())
    assert hit, run.err()
    signal_name, native, _, _, function, file = hit.groups()
    assert (signal_name, function) == ("SIGSEGV", "string_at")
    assert native
    assert run.err().index(hit[0]) < run.err().index("signal 11 (SIGSEGV)"), "before the failure's own line"
    shown = Path(file).read_text()
    for part in ("rank 1 of 2", "parse (", "waits_beside (", "native:", "<signal handler called>"):
        assert part in shown, shown
    merged = subprocess.run(
        [Path(run.launcher.program).with_name("actor-stacks"), "--path", Path(file).parent], capture_output=True, text=True
    )
    assert merged.returncode == 0, merged.stderr
    errors = "".join(each.read_text() for each in (tmp_path / "logs").rglob("stderr.log"))
    assert ("Fatal Python error: Segmentation fault" in errors) == (how != "alone")
    if how != "alone":
        assert "in parse" in errors


def test_an_abort_is_told_with_the_line_of_python(start: Start, tmp_path: Path) -> None:
    run = crashes(start, tmp_path, "abort")
    hit = HIT.search(run.err())
    assert hit, run.err()
    assert hit[1] == "SIGABRT"
    assert (hit[5], hit[4].split(":")[0]) == ("parse", "crash.py")
    assert "signal 6 (SIGABRT)" in run.err()
    assert Path(hit[6]).exists(), "a directory with stacks stays"


@pytest.mark.long
def test_a_crash_without_the_watchdog_is_as_ever(start: Start, tmp_path: Path) -> None:
    run = crashes(start, tmp_path, "alone", "--hang-action=off", is_watched=False)
    assert "was hit by" not in run.err()
    assert "signal 11 (SIGSEGV)" in run.err()
