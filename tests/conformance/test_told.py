"""What a checkpointer says to people: from where training goes on, when its first step was made, and what a mistake was."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from few_ranks import Job, said

from troupe.checkpoint import DdpCheckpointer, ranks

RESUMES = """
import os, sys, time, torch
from troupe.checkpoint import DdpCheckpointer

weights = torch.zeros(4, requires_grad=True)
optimizer = torch.optim.SGD([weights], 0.1)
with DdpCheckpointer(sys.argv[1]) as checkpointer:
    state = checkpointer.load_checkpoint()
    for step in range(state.get("step", 0), 3):
        weights.sum().backward()
        optimizer.step()
    if not state:
        assert checkpointer.save_checkpoint(3, {"step": 1})
"""


def lines_of(place: str, **environment: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", RESUMES, place],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stderr.splitlines() if line.startswith("troupe: ")]


def test_after_a_failure_it_is_told_from_where_training_goes_on_and_the_first_step(tmp_path):
    place = str(tmp_path)
    assert lines_of(place) == []
    assert lines_of(place) == [
        f"troupe: training goes on from step 3 at {place}, which rank 0 has from disk"
    ]
    resumed, stepped = lines_of(place, TROUPE_FAILED_AT=f"{time.monotonic() - 100:.3f}")
    assert resumed.startswith(f"troupe: training goes on from step 3 at {place}, which rank 0 has from disk, 1")
    for line in (resumed, stepped):
        seconds = float(line.split()[-5])
        assert 100 < seconds < 160 and line.endswith(f" {seconds:.1f} s after the failure")
    assert stepped.startswith("troupe: the first step was made 1")


def test_the_time_of_a_failure_that_is_no_number_is_left_out(tmp_path):
    assert lines_of(str(tmp_path), TROUPE_FAILED_AT="yesterday") == []


def test_an_empty_directory_is_refused():
    with pytest.raises(ValueError, match="checkpoint_dir is empty; '.' is the directory"):
        DdpCheckpointer("")


def test_what_cannot_be_saved_is_named(tmp_path):
    with DdpCheckpointer(tmp_path) as checkpointer:
        state = {"model": torch.zeros(3), "scheduler": [{"lr_lambda": lambda step: step}]}
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"state\['scheduler'\]\[0\]\['lr_lambda'\] cannot be saved: "):
            checkpointer.save_checkpoint(1, state)


def waits(rank: int, place: str) -> list[str]:
    ranks.WAIT_TOLD_AFTER, ranks.LOOK_EVERY = 0.5, 0.05
    with DdpCheckpointer(place) as checkpointer:
        until = time.monotonic() + 30
        while rank == 1 and time.monotonic() < until:  # its peer's line is what it waits for
            if Path(place, "told").exists():
                break
            time.sleep(0.02)
        if rank == 0:
            logging.getLogger("troupe.checkpoint").addHandler(Note(place))
        checkpointer.save_checkpoint(1, {"step": 1})
    return [line for line in said.lines if "has waited" in line]


class Note(logging.Handler):
    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def emit(self, record: logging.LogRecord) -> None:
        if "has waited" in record.getMessage():
            open(f"{self.place}/told", "w").close()


def test_a_rank_that_waits_for_others_says_so_once(tmp_path):
    job = Job(tmp_path, [2])
    try:
        first, second = job.run(waits, str(tmp_path))
    finally:
        job.close()
    assert len(first) == 1 and first[0].startswith("rank 0 has waited 0.5 s for other ranks in a call that all have")
    assert "`if rank == 0`" in first[0]
    assert second == []
