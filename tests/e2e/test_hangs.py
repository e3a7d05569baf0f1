"""Ranks that stand still: the line names the culprit and what it does, and stacks say where. Real gloo, four ranks.

A rank is told to hang by a file (hanging.py), after enough steps that the limits are learnt.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT, Start
from launchers import Launcher, Run, alive, until

WITHIN = 60.0
SCRIPT = Path(__file__).with_name("hanging.py")
CULPRIT = 2
WORK = 0.02  # seconds of a step
NEVER = 1_000_000
TOLD = re.compile(r"warning: (.*)")
# What is said of a rank that stands still or is slow, whichever it is.
VERDICT = re.compile(r"\bwaits? in \w+ #|\bhas been in |\bhas been stopped|\bis slow\b|\bhave all entered|stand still")


@dataclass
class Job:
    run: Run
    control: Path

    def trained(self, steps: int) -> None:
        said = f"step {steps}\n"

        def so_far() -> bool:
            assert self.run.launchers[0].poll() is None, self.run.err()
            return said in self.run.out()

        until(so_far, WITHIN, said)

    def begin(self, kind: str, where: str = "step") -> int:
        """In which process it has begun."""
        (self.control / "new").write_text(kind)
        (self.control / "new").rename(self.control / where)
        begun = re.compile(rf"hang {kind} at \S+ pid (\d+)")
        found = until(lambda: begun.search(self.run.out()), WITHIN, f"hang {kind}")
        return int(found[1])

    def sentence(self, within: float = WITHIN) -> str:
        """The first thing that is said of ranks."""

        def first() -> str | None:
            told = (line[1] for line in TOLD.finditer(self.run.err()))
            return next((line for line in told if "rank" in line), None)

        return until(first, within, f"a verdict:\n{self.run.err()}")

    def stacks(self) -> tuple[str, Path]:
        """Of how many ranks, and the directory."""
        line = re.compile(r"stacks of (\d of \d) ranks: (\S+)/py_stack\.svg")
        found = until(lambda: line.search(self.run.err()), WITHIN, f"stacks\n{self.run.err()}")
        return found[1], Path(found[2])

    def is_shown(self, function: str) -> None:
        """Both pictures are there, and of the culprit the one of Python shows this function."""
        ranks, directory = self.stacks()
        assert ranks == "4 of 4"
        for picture in ("py_stack.svg", "cpp_stack.svg"):
            assert (directory / picture).read_text().rstrip().endswith("</svg>")
        folded = (directory / "py_stack").read_text().splitlines()
        assert any(f"{function}@" in line for line in folded), "\n".join(folded)
        assert function in (directory / "py_stack.svg").read_text()


def verdicts(run: Run) -> list[str]:
    return [line for line in run.err().splitlines() if VERDICT.search(line)]


@pytest.fixture
def train(start: Start, tmp_path: Path) -> object:
    def started(*options: str, steps: int = NEVER, work: float = WORK, **how: object) -> Job:
        environment = {"PYTHONPATH": str(ROOT / "python")}
        worker = [str(SCRIPT), str(tmp_path), str(steps), str(work)]
        how = {"procs": 4, "environment": environment} | how
        return Job(start(worker, options=list(options), **how), tmp_path)

    return started


# What is asked, where, the sentence after the ranks that wait, the function in the stacks.
KINDS = {
    "stop": ("step", r"has been stopped \(SIGSTOP\) for .* s: kill -CONT {pid} lets it go on", "main"),
    "deadlock": ("step", r"has been in hanging\.py:\d+ \(lock_twice\) for .* s", "lock_twice"),
    "interpreter": ("step", r"has been in read\(\) at hanging\.py:\d+ \(keep_the_interpreter\) for .* s", "keep_the_interpreter"),
    # A loaded machine gives it too little of a core to call it a loop.
    "spin": ("step", r"has been in (a loop in )?hanging\.py:\d+ \(spin\) for .* s", "spin"),
    "undumpable": ("step", r"has been in .*", ""),
    "loader": ("loader", r"has been in read\(\) at hanging\.py:\d+ \(read_from_storage\) of its data loader worker 0 for .* s", "read_from_storage"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_rank_that_the_others_wait_for_is_named(train, kind: str) -> None:
    where, does, function = KINDS[kind]
    job = train()
    job.trained(40)
    pid = job.begin(kind, where)
    waits = rf"ranks 0, 1, 3 wait in all_reduce #\d+ of group default_pg for rank {CULPRIT}, which "
    assert re.match(waits + does.format(pid=pid), job.sentence())
    if function:
        job.is_shown(function)


def test_a_rank_that_leaves_the_order_of_collectives_is_named(train) -> None:
    job = train()
    job.trained(40)
    job.begin("order")
    assert re.match(
        rf"rank {CULPRIT} has entered barrier #\d+ of group default_pg where ranks 0, 1, 3 are in all_reduce: "
        "the order of collectives differs",
        job.sentence(),
    )
    job.is_shown("leave_the_order")


def test_a_slow_rank_is_told_apart_from_one_that_hangs(train) -> None:
    job = train(work=0.05)
    job.trained(80)
    job.begin("slow")
    assert re.match(rf"rank {CULPRIT} is slow: it works for .* in a step where the others need ", job.sentence())
    job.trained(100)  # it goes on


def test_a_full_disk_under_a_data_loader_is_told(train, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(full)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.decode().strip()}")
    try:
        job = train()
        job.trained(40)
        job.begin("disk", "loader")
        assert re.match(
            rf"ranks 0, 1, 3 wait in all_reduce #\d+ of group default_pg for rank {CULPRIT}, which has been in .*"
            r"\(write_to_cache\) of its data loader worker 0 for ",
            job.sentence(),
        )
        until(lambda: f"the file system of {full} is full" in job.run.err(), WITHIN, f"the reason\n{job.run.err()}")
        job.is_shown("write_to_cache")
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


def test_what_takes_long_and_is_no_hang_is_not_told(start: Start, tmp_path: Path) -> None:
    run = start([str(SCRIPT.with_name("steady.py")), "5", str(tmp_path / "checkpoint")], procs=4)
    assert run.wait(WITHIN) == [0]
    assert "finished" in run.out()
    assert verdicts(run) == []
