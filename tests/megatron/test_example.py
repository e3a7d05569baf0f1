"""deploy/examples/megatron_gpt.py: what is trained does not depend on a worker that was killed."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from frameworks import ROOT, Start
from launchers import Run, processes_tagged, until

STEPS = 120
ON_CPU = Path(__file__).with_name("on_cpu.py")


def trained(start: Start, place: Path) -> Run:
    words = [str(ON_CPU), str(ROOT / "deploy/examples/megatron_gpt.py"), str(place), str(STEPS)]
    return start(words, procs=2, restarts=1)


def kill_rank(run: Run, rank: int) -> None:
    def is_it(pid: int) -> bool:
        return f"RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")

    os.kill(next(pid for pid in processes_tagged(run.tag) if is_it(pid)), signal.SIGKILL)


def losses(run: Run) -> list[str]:
    return re.findall(rf"ends after step {STEPS} with loss (\S+)", run.out())


def test_the_example_ends_with_the_same_loss_whether_a_worker_was_killed_or_not(start: Start, tmp_path: Path) -> None:
    whole = trained(start, tmp_path / "whole")
    assert whole.wait(300) == [0], whole.err()
    again = trained(start, tmp_path / "whole")  # with the steps since the last one on the disk left to make
    assert again.wait(300) == [0] and losses(again) == losses(whole), again.err()
    broken = trained(start, tmp_path / "broken")
    until((tmp_path / "broken/iter_0000050/troupe-manifest.json").exists, 300, "the first step on disk")
    kill_rank(broken, 1)
    assert broken.wait(300) == [0], broken.err()
    begins = [int(n) for n in re.findall(r"begins with step (\d+)", broken.out())]
    assert begins[0] == 1 and len(begins) == 2 and 50 < begins[1] < STEPS
    assert losses(broken) == losses(whole) != []
