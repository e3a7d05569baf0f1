"""deploy/examples/zero.py: a second start makes what is left, which is nothing behind its last step."""

from __future__ import annotations

import re
from pathlib import Path

from frameworks import ROOT, Start

STEPS = 50  # the disk has each 50th


def test_the_example_is_started_again_before_and_behind_its_last_step(start: Start, tmp_path: Path) -> None:
    ends = []
    for steps in (STEPS, STEPS, STEPS - 10, STEPS + 2):
        run = start([str(ROOT / "deploy/examples/zero.py"), str(tmp_path / "c"), str(steps)], procs=2, restarts=0)
        assert run.wait(300) == [0], run.err()
        ends += re.findall(r"ends after step \d+|step \d+ is made already", run.out())
    assert ends == [f"ends after step {STEPS}", *[f"step {STEPS} is made already"] * 2, f"ends after step {STEPS + 2}"]
