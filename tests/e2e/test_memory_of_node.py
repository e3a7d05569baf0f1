"""The ranks of a node share its memory: what does not fit is not kept, and no process is killed for it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Start
from launchers import ROOT, Launcher, Run, actor_launcher, until
from memory_group import MIB, MemoryGroup

RANKS = 4
SNAPSHOT = 96 * MIB
# What the ledger leaves free, what snapshots have in advance, and what the processes themselves grow by.
BESIDE = 128 * MIB
PACKAGE = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

# Each rank has a shard of its own. The ranks come to each save in another order.
TRAINS = f"""
import json, os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, StorageType

place, prepares = Path(sys.argv[1]), sys.argv[2] == "prepares"
rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
checkpointer = DdpCheckpointer(place / "steps", local_shard_num={RANKS}, global_shard_num={RANKS})
x = torch.ones({SNAPSHOT} // 4)
(place / f"{{life}}-{{rank}}.ready").write_text(str(os.getpid()))
while not (place / "go").exists():
    time.sleep(0.01)
loaded = checkpointer.load_checkpoint()
step = first = loaded["step"] if loaded else 0
whole = not loaded or loaded["x"].min() == step == loaded["x"].max()  # without memory of its own
del loaded
if prepares and rank % 2 == life % 2:
    checkpointer.prepare({{"step": step, "x": x}})
saved = []
for turn in range(9):
    time.sleep(0.03 * ((rank + turn) % {RANKS}))
    step += 1
    x.fill_(step)
    where = StorageType.DISK if turn % 4 == 3 else StorageType.MEMORY
    if checkpointer.save_checkpoint(step, {{"step": step, "x": x}}, storage_type=where):
        saved.append(step)
checkpointer.wait_latest_checkpoint(60)
part = place / f"{{life}}-{{rank}}.part"
part.write_text(json.dumps({{"first": first, "whole": bool(whole), "saved": saved}}))
part.rename(place / f"{{life}}-{{rank}}.json")
while life == 0:
    time.sleep(0.01)
dist.barrier()
os._exit(0)
"""


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with MemoryGroup.made() as made:
        if made is None:
            pytest.skip("this machine lets the test make no memory control group")
        yield made


def records(run: Run, directory: Path, life: int) -> list[dict]:
    files = [directory / f"{life}-{rank}.json" for rank in range(RANKS)]
    [job] = run.launchers
    until(lambda: all(f.exists() for f in files) or job.poll() is not None, 120, f"life {life}")
    assert all(f.exists() for f in files), run.err()
    return [json.loads(f.read_text()) for f in files]


def started_with_room_for(
    snapshots: float, start: Start, group: MemoryGroup, launcher: Launcher, tmp_path: Path, how: str
) -> Run:
    """A job whose four ranks have so many snapshots' room each, beside all that they are without."""
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    inside = group.wrapped(launcher.program, tmp_path / "actor-launcher")
    run = start(
        [str(script), str(tmp_path), how],
        launcher=actor_launcher(inside),
        procs=RANKS,
        restarts=1,
        environment=PACKAGE,
    )
    ready = [tmp_path / f"0-{rank}.ready" for rank in range(RANKS)]
    until(lambda: all(f.exists() for f in ready), 120, "four ranks")
    group.limit(group.used() + BESIDE + int(RANKS * snapshots * SNAPSHOT))
    (tmp_path / "go").touch()
    return run


@pytest.mark.parametrize(
    ("snapshots", "how"),
    [
        (2, "prepares"),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in [(1, "saves"), (1.5, "saves"), (1.5, "prepares"), (2, "saves"), (3, "prepares")]
        ),
    ],
)
def test_no_rank_is_killed_and_what_is_kept_is_told(
    snapshots: float,
    how: str,
    group: MemoryGroup,
    start: Start,
    launcher: Launcher,
    tmp_path: Path,
) -> None:
    run = started_with_room_for(snapshots, start, group, launcher, tmp_path, how)
    first = records(run, tmp_path, 0)
    assert group.kills() == 0
    saved = first[0]["saved"]
    assert [one["saved"] for one in first] == [saved] * RANKS
    assert len(saved) >= 5, run.err()  # a save is refused while the disk has the one before
    os.kill(int((tmp_path / "0-2.ready").read_text()), signal.SIGKILL)

    second = records(run, tmp_path, 1)
    assert run.wait(60) == [0], run.err()
    assert group.kills() == 0
    assert [(one["first"], one["whole"]) for one in second] == [(saved[-1], True)] * RANKS
    assert len(second[0]["saved"]) >= 5, run.err()
    told = [line for line in run.err().splitlines() if "one snapshot per rank only" in line]
    # Once in each life at most: the second life has what the first had decided.
    assert len(told) == (1 if snapshots < 2 else 0), run.err()


def test_less_than_a_snapshot_for_each_is_refused_with_what_is_needed(
    group: MemoryGroup, start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    run = started_with_room_for(0.5, start, group, launcher, tmp_path, "saves")
    assert [one["saved"] for one in records(run, tmp_path, 0)] == [[]] * RANKS
    assert group.kills() == 0
    assert "one snapshot of each of the 4 ranks of this node needs" in run.err()
