"""The workers' channel to their node supervisor: the first step is told once, and a new supervisor is dialled."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_without_the_watchdog_the_job_trains(start: Start, tmp_path: Path) -> None:
    ends(trains(start, tmp_path, "works", "--hang-action=off"), tmp_path)
