"""What deploy/examples shows does what it says: what is trained does not depend on a worker that was killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from conftest import ROOT, Start
from launchers import Launcher, Run, free_port, processes_tagged, until

EXAMPLES = ROOT / "deploy/examples"
WITHIN = 120.0
STEPS = 300

# Slurm's, for two nodes that are both this machine, with one processor each.
SRUN = """\
#!/bin/sh
[ "$1" = --ntasks-per-node=1 ] || exit 64
shift
for node in 0 1; do
  SLURM_NODEID=$node taskset --cpu-list "$(echo "$PROCESSORS" | cut -d, -f $((node + 1)))" "$@" &
  tasks="$tasks $!"
done
for task in $tasks; do wait "$task" || code=$?; done
exit ${code:-0}
"""


@pytest.fixture
def package(launcher: Launcher) -> dict[str, str]:
    programs = Path(launcher.program).resolve().parent
    return {
        "PYTHONPATH": str(ROOT / "python"),
        "TROUPE_BIN_DIR": str(programs),
        "OMP_NUM_THREADS": "1",
    }


def losses(run: Run) -> list[str]:
    return re.findall(rf"ends after step {STEPS} with loss (\S+)", run.out())


def kill_rank(run: Run, rank: int) -> None:
    def is_it(pid: int) -> bool:
        return f"RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")

    os.kill(next(pid for pid in processes_tagged(run.tag) if is_it(pid)), signal.SIGKILL)


def goes_on_after_a_killed_worker(broken: Run, first_on_disk: Path) -> list[str]:
    """The loss at its end, which is at a later step than it went on with."""
    until(first_on_disk.exists, WITHIN, "the first step on disk")
    kill_rank(broken, 1)
    assert broken.wait(WITHIN) == [0], broken.err()
    begins = [int(n) for n in re.findall(r"begins with step (\d+)", broken.out())]
    assert begins[0] == 1 and len(begins) == 2 and 50 < begins[1] < STEPS
    return losses(broken)


@pytest.mark.parametrize(
    ("example", "first_on_disk"),
    [
        ("ddp.py", "50"),
        pytest.param("elastic.py", "50", marks=pytest.mark.long),
        pytest.param("fsdp.py", "50", marks=pytest.mark.long),
        pytest.param("trainer.py", "checkpoint-50/whole", marks=pytest.mark.long),
        pytest.param("trainer_in_memory.py", "checkpoint-50/troupe-manifest.json", marks=pytest.mark.long),
        pytest.param("lightning_in_memory.py", "step=50.ckpt", marks=pytest.mark.long),
    ],
)
def test_a_script_ends_with_the_same_loss_whether_a_worker_was_killed_or_not(
    start: Start, package: dict[str, str], tmp_path: Path, example: str, first_on_disk: str
) -> None:
    def trained(name: str) -> Run:
        words = [str(EXAMPLES / example), str(tmp_path / name), str(STEPS)]
        return start(words, procs=2, restarts=1, environment=package)

    whole = trained("whole")
    assert whole.wait(WITHIN) == [0], whole.err()
    assert len(losses(whole)) == 1
    again = trained("whole")
    assert again.wait(WITHIN) == [0], again.err()
    assert f"step {STEPS} is made already" in again.out() or losses(again) == losses(whole)
    broken = trained("broken")
    loss = goes_on_after_a_killed_worker(broken, tmp_path / "broken" / first_on_disk)
    assert loss == losses(whole)


class Sbatch(Launcher):
    """Runs a batch script in the directory that it was submitted from."""

    def command(self, worker: list[str], **_: object) -> list[str]:
        script = Path(worker[0])
        return ["bash", "-c", 'cd "$0" && exec bash "$1"', str(script.parent), str(script)]


@pytest.mark.long
def test_the_batch_script_goes_on_after_a_killed_worker(
    start: Start, package: dict[str, str], tmp_path: Path
) -> None:
    processors = sorted(os.sched_getaffinity(0))
    environment = tmp_path / "env/bin"  # where the script looks for it
    environment.mkdir(parents=True)
    (environment / "activate").write_text(f"PATH={environment}:$TROUPE_BIN_DIR:$PATH\n")
    (environment / "srun").write_text(SRUN)
    (environment / "srun").chmod(0o755)

    def submitted(name: str) -> Run:
        (tmp_path / name).mkdir()
        script = (EXAMPLES / "train.sbatch").read_text()
        (tmp_path / name / "train.sbatch").write_text(script.replace("checkpoints\n", f"checkpoints {STEPS}\n"))
        shutil.copy(EXAMPLES / "ddp.py", tmp_path / name)
        slurm = {
            "HOME": str(tmp_path),
            "SLURM_JOB_ID": str(free_port()),
            "SLURM_JOB_NODELIST": "127.0.0.[2-3]",
            "SLURM_NNODES": "2",
            "PROCESSORS": ",".join(str(each) for each in (processors * 2)[:2]),
        }
        words = [str(tmp_path / name / "train.sbatch")]
        return start(words, launcher=Sbatch("sbatch", ""), environment=package | slurm)

    whole = submitted("whole")
    assert whole.wait(WITHIN) == [0], whole.err()
    assert len(losses(whole)) == 1
    broken = submitted("broken")
    loss = goes_on_after_a_killed_worker(broken, tmp_path / "broken/checkpoints/50")
    assert loss == losses(whole)
    assert not list(tmp_path.glob(".troupe-token.*"))


def test_the_manual_shows_the_batch_script() -> None:
    lines = (EXAMPLES / "train.sbatch").read_text().splitlines(keepends=True)
    script = "".join(line for line in lines if not line.startswith("# shellcheck"))
    assert f"```sh\n{script}```\n" in (ROOT / "docs/slurm.md").read_text()
