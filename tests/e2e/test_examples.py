"""What deploy/examples shows does what it says."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from conftest import ROOT, Start
from launchers import Run, children, until

EXAMPLES = ROOT / "deploy/examples"
PACKAGE = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def losses(run: Run) -> list[str]:
    return re.findall(r"ends after step \d+ with loss (\S+)", run.out())


def test_ddp_ends_with_the_same_loss_whether_a_worker_was_killed_or_not(
    start: Start, tmp_path: Path
) -> None:
    def trained(name: str, **how: object) -> Run:
        words = [str(EXAMPLES / "ddp.py"), str(tmp_path / name), "400"]
        return start(words, procs=2, restarts=1, environment=PACKAGE, **how)

    whole = trained("whole")
    assert whole.wait(120) == [0], whole.err()
    broken = trained("broken")
    until(lambda: (tmp_path / "broken" / "50").exists(), 60, "the first step on disk")
    ours = children(broken.launchers[0].pid).items()
    os.kill(max(pid for pid, what in ours if not what.startswith("troupe-")), signal.SIGKILL)
    assert broken.wait(120) == [0], broken.err()
    begins = [int(n) for n in re.findall(r"begins with step (\d+)", broken.out())]
    assert begins[0] == 1 and len(begins) == 2 and begins[1] > 50
    assert losses(whole) == losses(broken) and len(losses(whole)) == 1
