"""Scripts of several stages, each with a directory of its own, that are killed: no stage ever gets another one's state."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest
import torch
from conftest import Start
from killed_jobs import ENVIRONMENT, WITHIN
from launchers import Launcher, actor_launcher, until
from memory_group import MIB, MemoryGroup

KILLS = int(os.environ.get("KILLS", "2"))

# Three stages and three kinds of checkpointers: steps in memory, each fifth one on the disk. What each stage begins with is the end of
# the one before it. `said` grows by a line for each step that is in memory.
STAGES = """
import json, os, random, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from troupe.checkpoint import DdpCheckpointer, StorageType
from troupe.checkpoint.accelerate import States

place, steps = Path(sys.argv[1]), int(sys.argv[2])
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("gloo")

def say(stage, step):
    with open(place / f"said-{rank}", "a") as said:
        said.write(json.dumps({"pid": os.getpid(), "stage": stage, "step": step}) + "\\n")

def where(step):
    return StorageType.DISK if step % 5 == 0 or step == steps else StorageType.MEMORY

def train(model, optimizer, step, stage):
    generator = torch.Generator().manual_seed(1000 * step + 10 * stage + rank)
    model(torch.randn(8, 64, generator=generator)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.02)

def made():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)

# Pre-training.
model, optimizer = made()
parallel = DistributedDataParallel(model)
with DdpCheckpointer(place / "pretrain") as checkpointer:
    state = checkpointer.load_checkpoint()
    if state:
        assert state["stage"] == "pretrain", state["stage"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in range(state.get("step", 0) + 1, steps + 1):
        train(parallel, optimizer, step, 1)
        state = {"stage": "pretrain", "step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        assert checkpointer.save_checkpoint(step, state, "", where(step))
        say("pretrain", step)
    assert checkpointer.wait_latest_checkpoint(120)
del state
pretrained = {name: tensor.clone() for name, tensor in model.state_dict().items()}

# Fine-tuning.
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model, optimizer = made()
model.load_state_dict(pretrained)
prepared, optimizer = accelerator.prepare(model, optimizer)
class Position:
    step = 0
    def state_dict(self):
        return {"stage": "finetune", "step": self.step}
    def load_state_dict(self, state):
        assert state["stage"] == "finetune", state["stage"]
        self.step = state["step"]
position = Position()
accelerator.register_for_checkpointing(position)
states = States(accelerator, place / "finetune")
states.load()
while position.step < steps:
    position.step += 1
    train(prepared, optimizer, position.step, 2)
    assert states.save(position.step, where(position.step))
    say("finetune", position.step)
assert states.wait(120)
states.close()

# Evaluation.
total, begin = torch.zeros(()), 0
with DdpCheckpointer(place / "evaluate") as checkpointer, torch.no_grad():
    state = checkpointer.load_checkpoint()
    if state:
        assert state["stage"] == "evaluate", state["stage"]
        total, begin = state["total"].clone(), state["step"]
    for step in range(begin + 1, steps + 1):
        generator = torch.Generator().manual_seed(7000 + step)
        total += model(torch.randn(8, 64, generator=generator)).square().mean()
        time.sleep(0.02)
        assert checkpointer.save_checkpoint(step, {"stage": "evaluate", "step": step, "total": total}, "", where(step))
        say("evaluate", step)
    assert checkpointer.wait_latest_checkpoint(120)
torch.save({"weights": model.state_dict(), "pretrained": pretrained, "total": total}, place / f"end-{rank}.pt")
"""


def said(place: Path, rank: int = 0) -> list[dict]:
    try:
        return [json.loads(line) for line in (place / f"said-{rank}").read_text().splitlines()]
    except FileNotFoundError:
        return []


def ends_of(place: Path) -> list[dict]:
    return [torch.load(place / f"end-{rank}.pt") for rank in range(2)]


def same(one: dict, other: dict) -> bool:
    weights = all(torch.equal(one[kind][name], other[kind][name]) for kind in ("weights", "pretrained") for name in one[kind])
    return weights and torch.equal(one["total"], other["total"])


def kill_in_each_stage(place: Path, steps: int, kills: int) -> None:
    """A rank at a random moment of some step, `kills` times over all stages."""
    chance, killed = random.Random(), set[int]()
    for kill in range(kills):
        # So many lines more, of processes that were not killed yet; the last ones come in the last stage.
        begun = len(said(place))
        more = chance.randrange(1, max(2, 3 * steps // (kills + 1)))

        def goes_on(begun: int = begun, more: int = more) -> list[int] | None:
            rows = [said(place, rank) for rank in range(2)]
            if all(rows) and (len(rows[0]) >= begun + more or (rows[0][-1]["stage"], rows[0][-1]["step"]) == ("evaluate", steps - 1)):
                pids = [row[-1]["pid"] for row in rows]
                return pids if not set(pids) & killed else None
            return None

        pids = until(goes_on, WITHIN, f"kill {kill + 1}")
        killed |= set(pids)
        os.kill(chance.choice(pids), signal.SIGKILL)


def run_killed(start: Start, tmp_path: Path, steps: int, kills: int) -> list[str]:
    script = tmp_path / "stages.py"
    script.write_text(STAGES)
    (tmp_path / "killed").mkdir()
    (tmp_path / "undisturbed").mkdir()
    run = start([str(script), str(tmp_path / "killed"), str(steps)], procs=2, restarts=kills + 1, environment=ENVIRONMENT)
    kill_in_each_stage(tmp_path / "killed", steps, kills)
    assert run.wait(WITHIN) == [0], run.err()
    other = start([str(script), str(tmp_path / "undisturbed"), str(steps)], procs=2, environment=ENVIRONMENT)
    assert other.wait(WITHIN) == [0], other.err()
    for mine, theirs in zip(ends_of(tmp_path / "killed"), ends_of(tmp_path / "undisturbed"), strict=True):
        assert same(mine, theirs)
    # No stage makes steps again that it has in memory, but for the one at which it was killed.
    rows = said(tmp_path / "killed")
    for stage in ("pretrain", "finetune", "evaluate"):
        made = [row["step"] for row in rows if row["stage"] == stage]
        assert len(made) <= steps + 2 * kills, (stage, made)
    return [line for line in run.err().splitlines() if "training goes on from" in line]


def test_three_stages_that_are_killed_end_as_those_that_are_not(start: Start, tmp_path: Path) -> None:
    told = run_killed(start, tmp_path, 12, KILLS)
    assert told


@pytest.mark.long
def test_three_stages_that_are_killed_often(start: Start, tmp_path: Path) -> None:
    run_killed(start, tmp_path, 40, max(KILLS, 12))


# Many directories in turn, more than memory has slots; and what is found when they are opened again.
TRIALS = """
import json, os, sys
from pathlib import Path
import torch
from troupe.checkpoint import DdpCheckpointer, StorageType

place, count = Path(sys.argv[1]), int(sys.argv[2])
found = []
for trial in [*range(count), 0, count - 1, count // 2]:
    with DdpCheckpointer(place / str(trial)) as checkpointer:
        state = checkpointer.load_checkpoint()
        found.append(state.get("step"))
        if not state:
            for step in (1, 2, 3):
                state = {"step": 100 * trial + step, "x": torch.full((1 << 16,), float(trial))}
                assert checkpointer.save_checkpoint(100 * trial + step, state, "", StorageType.DISK)
            assert checkpointer.wait_latest_checkpoint(60)
        else:
            assert bool((state["x"] == state["step"] // 100).all())
Path(place / "found.json").write_text(json.dumps(found))
"""


def test_any_number_of_directories_in_turn(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "trials.py"
    script.write_text(TRIALS)
    run = start([str(script), str(tmp_path), "20"], environment=ENVIRONMENT)
    assert run.wait(120) == [0], run.err()
    assert json.loads((tmp_path / "found.json").read_text()) == [None] * 20 + [3, 1903, 1003]


# A job whose only rank saves once, at the moment at which another job in the same control group does.
ONE_SNAPSHOT = """
import os, sys, time
from pathlib import Path
import torch
from troupe.checkpoint import DdpCheckpointer, StorageType

place, name, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
checkpointer = DdpCheckpointer(place / name)
x = torch.ones(size // 4)
(place / f"{name}.ready").touch()
while not (place / "go").exists():
    time.sleep(0.0005)
kept = [checkpointer.save_checkpoint(step, {"x": x}, "", StorageType.MEMORY) for step in (1, 2, 3)]
(place / f"{name}.part").write_text(str(kept))
(place / f"{name}.part").rename(place / f"{name}.kept")
while not (place / "end").exists():
    time.sleep(0.01)
"""


def test_two_jobs_in_one_control_group_do_not_both_take_the_room_of_one(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    size = 256 * MIB
    with MemoryGroup.made() as group:
        if group is None:
            pytest.skip("this machine lets the test make no memory control group")
        script = tmp_path / "save.py"
        script.write_text(ONE_SNAPSHOT)
        inside = actor_launcher(group.wrapped(launcher.program, tmp_path / "actor-launcher"))
        names = ("one", "other")
        jobs = [
            start([str(script), str(tmp_path), name, str(size)], launcher=inside, environment=ENVIRONMENT | {"OMP_NUM_THREADS": "1"})
            for name in names
        ]
        until(lambda: all((tmp_path / f"{name}.ready").exists() for name in names), 120, "two jobs")
        group.limit(group.used() + size + size // 2 + 96 * MIB)
        (tmp_path / "go").touch()
        until(lambda: all((tmp_path / f"{name}.kept").exists() for name in names) or group.kills(), 120, "saves")
        assert group.kills() == 0
        kept = [(tmp_path / f"{name}.kept").read_text() for name in names]
        assert sorted(kept) == ["[False, False, False]", "[True, True, True]"], [job.err() for job in jobs]
        (tmp_path / "end").touch()
        assert [job.wait(60) for job in jobs] == [[0], [0]]
        refused = jobs[kept.index("[False, False, False]")].err()
        assert "MiB of memory" in refused and "left" in refused or "others of the same bound" in refused
