"""DdpCheckpointer in training that is killed, ends, and is started anew."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from conftest import Start
from launchers import ROOT, until

PACKAGE = {"PYTHONPATH": str(ROOT / "python")}
WITH_DEVICE = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/conformance'}"}
STEPS = 60

# Every rank's part of a step is a function of rank and step, so the end of an undisturbed run can be computed.
TRAINS = """
import json, logging, os, sys, threading, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, KeepLatestStep, StorageType

place, steps, device = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if device == "fake":
    import accelerator
    accelerator.load()

def let_go():  # of a device that copies nothing before a thread has to wait for it
    torch.fake.until_waited_for(0)
    torch.fake.go(0)
rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
told = []
logging.getLogger("troupe.checkpoint").setLevel(logging.INFO)
logging.getLogger("troupe.checkpoint").addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
dist.init_process_group("gloo")

def part(of, step):
    return torch.rand(100_000, generator=torch.Generator().manual_seed(1000 * step + of))

def stepped(x, update):
    x.mul_(0.999).add_((update * 0.01).to(x.device))  # in the memory that is being saved

def save(step, state, where):  # as soon as there is an image for it: the disk may be slow
    until = time.monotonic() + 50
    while not checkpointer.save_checkpoint(step, state, storage_type=where):
        assert "being written out" in told[-1] and time.monotonic() < until, told
        time.sleep(0.01)

ckpt = place / "checkpoints"
checkpointer = DdpCheckpointer(ckpt, deletion_strategy=KeepLatestStep(2, ckpt))
state = checkpointer.load_checkpoint() or {"step": 0, "x": torch.zeros(100_000)}
x, resumed = state["x"].to(device), state["step"]
record = {"pid": os.getpid(), "resumed": state["step"], "told": told}
(place / f"{life}-{rank}.part").write_text(json.dumps(record))
(place / f"{life}-{rank}.part").rename(place / f"{life}-{rank}.json")
while state["step"] < steps:
    step = state["step"] + 1
    update = part(rank, step)
    dist.all_reduce(update)
    if device == "fake" and step > resumed + 1:
        threading.Thread(target=let_go, daemon=True).start()
    stepped(x, update)
    state = {"step": step, "x": x}
    if step % 10 == 0:
        save(step, state, StorageType.DISK)
    if device == "fake":
        torch.fake.hold(0)
    save(step, state, StorageType.MEMORY)
    if rank == 0:
        (place / "step").write_text(str(step))
    if life < 2:
        time.sleep(0.02)
    while life < 2 and step >= steps - 5:  # until it is killed
        time.sleep(0.02)
undisturbed = torch.zeros(100_000)
for step in range(1, steps + 1):
    stepped(undisturbed, part(0, step) + part(1, step))
if device == "fake":
    torch.fake.go(0)
assert torch.equal(undisturbed, x.cpu()), "not the weights of an undisturbed run"
assert checkpointer.wait_latest_checkpoint(60), told
(place / f"done-{rank}").write_text("")
os._exit(0)
"""


def lives(directory: Path, life: int) -> list[dict]:
    files = [directory / f"{life}-{rank}.json" for rank in range(2)]
    until(lambda: all(f.exists() for f in files), 60, f"life {life}")
    return [json.loads(f.read_text()) for f in files]


def step_of(directory: Path) -> int:
    try:
        return int((directory / "step").read_text() or 0)
    except FileNotFoundError:
        return 0


def complete_steps(place: Path) -> list[int]:
    sys.path.insert(0, PACKAGE["PYTHONPATH"])
    from troupe.checkpoint import complete_steps as complete

    return complete(str(place))


@pytest.mark.parametrize("device, behind", [pytest.param("cpu", 0, marks=pytest.mark.long), ("fake", 1)])
def test_killed_at_any_point_training_ends_with_the_same_bits(
    start: Start, tmp_path: Path, device: str, behind: int
) -> None:
    """`behind`: how many steps may be lost that were saved, since a device may be copying the last one yet."""
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    chance = random.Random()
    command = [str(script), str(tmp_path), str(STEPS), device]
    run = start(command, procs=2, restarts=2, environment=WITH_DEVICE)
    for life in range(2):
        ranks = lives(tmp_path, life)
        killed_at = min(step_of(tmp_path) + chance.randrange(1 + behind, STEPS // 4), STEPS - 5)
        until(lambda: step_of(tmp_path) >= killed_at, 60, f"step {killed_at}")
        last = step_of(tmp_path)
        os.kill(ranks[chance.randrange(2)]["pid"], signal.SIGKILL)
        resumed = lives(tmp_path, life + 1)
        # A rank that trained on until it was stopped saved no more than the step that all were in.
        assert resumed[0]["resumed"] == resumed[1]["resumed"] >= last - behind, (resumed, last)
        assert f"rank 0: step {resumed[0]['resumed']} comes from memory" in resumed[0]["told"]
    assert run.wait(60) == [0], run.err()
    assert all((tmp_path / f"done-{rank}").exists() for rank in range(2))
    assert complete_steps(tmp_path / "checkpoints") == [60, 50]
    assert run.leftovers() == []


SHARDS = """
import os, sys
import torch, torch.distributed as dist
from troupe.checkpoint import CheckpointError, DdpCheckpointer

place, step, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
checkpointer = DdpCheckpointer(place, local_shard_num=world, global_shard_num=world)
try:
    state = checkpointer.load_checkpoint()
except CheckpointError as error:
    sys.exit(f"load: {error}")
print(f"rank {rank} had {state and (state['step'], state['rank'], state['x'].sum().item())}", flush=True)
big = torch.full((8 << 20,), float(rank + 1))
path = file and f"{place}/{file.format(step=step, rank=rank)}"
assert checkpointer.save_checkpoint(step, {"step": step, "rank": rank, "x": big}, path)
os._exit(0)  # right after it
"""


@pytest.mark.parametrize(
    "file", [pytest.param("", id="directories", marks=pytest.mark.long), pytest.param("model-{step}.{rank}.pt", id="in place")]
)
def test_shards_of_a_job_that_ends_right_after_saving_are_there_for_the_next(
    start: Start, tmp_path: Path, file: str
) -> None:
    script, place = tmp_path / "shards.py", tmp_path / "checkpoints"
    script.write_text(SHARDS)
    for step, had in ((5, {}), (6, 5)):
        run = start([str(script), str(place), str(step), file], procs=2, environment=PACKAGE)
        assert run.wait(60) == [0], run.err()
        for rank in range(2):
            expected = had and (had, rank, float((8 << 20) * (rank + 1)))
            assert f"rank {rank} had {expected}" in run.out(), run.out()
        assert complete_steps(place)[0] == step
        default = f"{step}/rank_{{rank}}.pt"
        files = [place / (file or default).format(step=step, rank=rank) for rank in range(2)]
        pattern = f"model-{step}.*" if file else f"{step}/*.pt"
        assert sorted(place.glob(pattern)) == files
    alone = start([str(script), str(place), "7", file], procs=1, environment=PACKAGE)
    assert alone.wait(60) == [1]
    assert "was saved by 2 ranks as 2 shards, and this world of 1 has 1" in alone.err()


# The group's thread is in the middle of Python code when the script ends, as it now and then is by itself.
ENDS_WITH_ALL_OPEN = """
import atexit, os, sys, time
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer

dist.init_process_group("gloo")
checkpointer = DdpCheckpointer(sys.argv[1])
assert checkpointer.save_checkpoint(1, {"x": torch.ones(10)})
work = dist.all_reduce(torch.ones(1), group=checkpointer._ranks.group, async_op=True)
work.get_future().add_done_callback(lambda _: time.sleep(1))
time.sleep(0.2)
if os.fork() == 0:
    atexit._run_exitfuncs()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
if sys.argv[2] == "groups destroyed":
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("how", ["as it is", pytest.param("groups destroyed", marks=pytest.mark.long)])
def test_a_script_may_end_with_its_checkpointer_open(
    start: Start, tmp_path: Path, how: str
) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS_WITH_ALL_OPEN)
    run = start([str(script), str(tmp_path / "checkpoints"), how], procs=2, environment=PACKAGE)
    assert run.wait(60) == [0], run.err()
    assert run.leftovers() == []
    assert complete_steps(tmp_path / "checkpoints") == [1]
