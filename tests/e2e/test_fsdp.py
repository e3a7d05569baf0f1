"""Sharded training under actor-launcher: killed, read by PyTorch alone, and gone on with in another world."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import Start
from launchers import PYTHON, ROOT, Run, until

PACKAGE = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/conformance'}", "OMP_NUM_THREADS": "1"}
STEPS = 40
WITHIN = 240.0

TRAINS = """
import hashlib, json, logging, os, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import torch, torch.distributed as dist
from sharded import Trained, leaves
from troupe.checkpoint import CheckpointError, StorageType
from troupe.checkpoint.fsdp import FsdpShardCheckpointer

place, kind, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
trained = Trained(kind)
with FsdpShardCheckpointer(place / "ckpt") as checkpointer:
    first = checkpointer.load_checkpoint(trained.model, trained.optimizer).get("step", 0) + 1
    (place / f"pid-{life}-{rank}").write_text(str(os.getpid()))
    for step in range(first, steps + 1):
        trained.step(step)
        where = StorageType.DISK if step % 10 == 0 else StorageType.MEMORY
        until = time.monotonic() + 60  # the disk may be slow
        while not checkpointer.save_checkpoint(step, trained.model, trained.optimizer, {"step": step}, storage_type=where):
            assert time.monotonic() < until
        if rank == 0:
            (place / "step").write_text(str(step))
        if "slowly" in sys.argv:
            time.sleep(0.05)
    assert checkpointer.wait_latest_checkpoint(60)
state = trained.state(0)
digest = hashlib.sha256()
for path, value in sorted(leaves(state).items()):
    digest.update(path.encode() + (value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value).encode()))
(place / f"end-{rank}").write_text(json.dumps([first, digest.hexdigest()]))
dist.destroy_process_group()
"""

READS = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
dcp_to_torch_save(sys.argv[1], sys.argv[2])
assert "troupe" not in sys.modules
print(torch.load(sys.argv[2], weights_only=True)["step"])
"""


def train(start: Start, place: Path, *words: str, procs: int = 2, **how: object) -> Run:
    place.mkdir(exist_ok=True)
    script = place / "train.py"
    script.write_text(TRAINS)
    return start([str(script), str(place), *words], procs=procs, environment=PACKAGE, **how)


def ends(place: Path, procs: int = 2) -> list[list[object]]:
    return [json.loads((place / f"end-{rank}").read_text()) for rank in range(procs)]


def step_of(place: Path) -> int:
    found = place / "step"
    return int(found.read_text() or 0) if found.exists() else 0


@pytest.mark.parametrize("kind", ["fsdp2"] if "KILLS" not in os.environ else ["fsdp1", "fsdp2"])
@pytest.mark.long
def test_weights_do_not_depend_on_killed_workers(start: Start, tmp_path: Path, kind: str) -> None:
    whole = train(start, tmp_path / "whole", kind, str(STEPS))
    assert whole.wait(WITHIN) == [0], whole.err()
    place = tmp_path / "broken"
    broken = train(start, place, kind, str(STEPS), "slowly", restarts=3)
    chosen = random.Random(kind)
    for life, least in enumerate((12, 25)):
        until(lambda least=least: step_of(place) >= least, WITHIN, f"step {least}")
        pid = int((place / f"pid-{life}-{chosen.randrange(2)}").read_text())
        os.kill(pid, signal.SIGKILL)
    assert broken.wait(WITHIN) == [0], broken.err()
    assert [digest for _, digest in ends(place)] == [digest for _, digest in ends(tmp_path / "whole")]
    assert [first > 25 for first, _ in ends(place)] == [True, True]
    assert len(re.findall(r"training goes on from step \d+, which rank 0 has from memory", broken.out() + broken.err())) == 2
    # What is on the disk is PyTorch's.
    line = [str(PYTHON), "-c", READS, str(place / f"ckpt/{STEPS}"), str(tmp_path / "one.pt")]
    read = subprocess.run(line, capture_output=True, text=True)
    assert read.stdout.strip() == str(STEPS), read.stderr


def test_a_job_goes_on_with_another_number_of_ranks_and_names_what_is_damaged(
    start: Start, tmp_path: Path
) -> None:
    place = tmp_path / "job"
    assert (run := train(start, place, "fsdp2", "20")).wait(WITHIN) == [0], run.err()
    assert (run := train(start, place, "fsdp2", "30", procs=3)).wait(WITHIN) == [0], run.err()
    assert [first for first, _ in ends(place, 3)] == [21] * 3
    shard = place / "ckpt/30/__1_0.distcp"
    content = shard.read_bytes()
    for name in ("10", "20"):
        (place / "ckpt" / name / "troupe-manifest.json").unlink()  # no step is left to go back to
    shard.write_bytes(content[: len(content) // 2])
    run = train(start, place, "fsdp2", "40", procs=3)
    assert run.wait(WITHIN) != [0]
    assert re.search(r"step 30.*__1_0\.distcp", run.err() + run.out())
