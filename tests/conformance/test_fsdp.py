"""FSDP's checkpointers: the example that users of DLRover know, and training that is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dist_cp
from few_ranks import Job
from sharded import Trained, leaves, same
from torch.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType

from troupe.checkpoint import CheckpointError, StorageType
from troupe.checkpoint.fsdp import FsdpFullCheckpointer, FsdpShardCheckpointer

MEMORY = StorageType.MEMORY


def saves_as_the_example(rank: int, checkpoint_dir: str) -> Any:
    trained = Trained("fsdp1")
    model, optimizer, step = trained.model, trained.optimizer, 7
    trained.step(1)
    checkpointer = FsdpShardCheckpointer(checkpoint_dir)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        state_dict = {
            "model": model.state_dict(),
            "optim": FSDP.optim_state_dict(model, optimizer),
            "step": step,
        }
        ckpt_dir = os.path.join(checkpoint_dir, str(step))
        checkpointer.save_checkpoint(step, state_dict, ckpt_dir, storage_type=StorageType.MEMORY)
    kept = leaves(trained.state(step))
    checkpointer.close()
    return kept


def loads_as_the_example(rank: int, checkpoint_dir: str) -> Any:
    trained = Trained("fsdp1", seed=3)
    model, optimizer = trained.model, trained.optimizer
    checkpointer = FsdpShardCheckpointer(checkpoint_dir)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        state_dict = {
            "model": model.state_dict(),
            "step": 0,
        }
        storage_reader = checkpointer.get_storage_reader()
        if not storage_reader:
            return None
        dist_cp.load_state_dict(
            state_dict=state_dict,
            storage_reader=storage_reader,
        )
        model.load_state_dict(state_dict["model"])
        optim_state = load_sharded_optimizer_state_dict(
            model_state_dict=state_dict["model"],
            optimizer_key="optim",
            storage_reader=storage_reader,
        )
        flattened_osd = FSDP.optim_state_dict_to_load(model, optimizer, optim_state["optim"])
        optimizer.load_state_dict(flattened_osd)
    checkpointer.close()
    return leaves(trained.state(state_dict["step"]))


def test_the_example_runs_as_it_stands(tmp_path: Path):
    job = Job(tmp_path, [2])
    assert job.run(loads_as_the_example, str(tmp_path / "c")) == [None] * 2
    saved = job.run(saves_as_the_example, str(tmp_path / "c"))
    for mine, found in zip(saved, job.run(loads_as_the_example, str(tmp_path / "c")), strict=True):
        assert same(mine, found)
    job.close()


# ---- Killed at random moments ----

STEPS = 60
KILLS = int(os.environ.get("KILLS", "2"))


Death = tuple[int, int, float]  # a rank, after so many steps and so many seconds


def trains(rank: int, kind: str, place: Path, dies: Death | None) -> dict[str, Any] | str:
    made = FsdpFullCheckpointer if "full" in kind else FsdpShardCheckpointer
    trained = Trained(kind.removesuffix(" full"))
    with made(place) as checkpointer:
        first = checkpointer.load_checkpoint(trained.model, trained.optimizer).get("step", 0) + 1
        try:
            step = first
            while step <= STEPS:
                if dies and dies[0] == rank and step == min(first + dies[1], STEPS):
                    threading.Timer(dies[2], os.kill, (os.getpid(), signal.SIGKILL)).start()
                trained.step(step)
                checkpointer.save_checkpoint(
                    step, trained.model, trained.optimizer, {"step": step}, storage_type=MEMORY
                )
                # A rank that is to be killed has something to do until then.
                step += 1 if not dies or step < STEPS else 0
        except (CheckpointError, RuntimeError) as error:  # the other has gone
            return f"{first} {error}"
    return leaves(trained.state(STEPS))


# All kinds where a person says how often, since each takes half a minute.
@pytest.mark.parametrize(
    "kind", ["fsdp1", "fsdp2", "fsdp1 full", "fsdp2 full"] if "KILLS" in os.environ else [pytest.param("fsdp1 full", marks=pytest.mark.long), "fsdp2"]
)
def test_training_that_is_killed_at_random_moments_ends_with_the_same_weights(kind: str, tmp_path: Path):
    (tmp_path / "whole").mkdir()
    whole = Job(tmp_path / "whole", [2])
    weights = whole.run(trains, kind, tmp_path / "c", None)
    whole.close()
    chosen = random.Random(kind)
    job, firsts = Job(tmp_path, [2] if "full" not in kind else [1, 1]), []
    for _ in range(KILLS):
        dies = (chosen.randrange(2), chosen.randrange(1, 4), chosen.uniform(0.0, 0.05))
        told = job.run(trains, kind, tmp_path / "d", dies)
        assert told[dies[0]] == -signal.SIGKILL
        firsts.append(int(str(told[1 - dies[0]]).partition(" ")[0]))
    assert firsts == sorted(firsts) and firsts[-1] > 1
    for mine, theirs in zip(job.run(trains, kind, tmp_path / "d", None), weights, strict=True):
        assert same(mine, theirs)
    job.close()


def test_what_is_no_model_is_refused(tmp_path: Path):
    with FsdpShardCheckpointer(tmp_path) as checkpointer:
        with pytest.raises(TypeError, match="or \\(step, state, path\\)"):
            checkpointer.save_checkpoint(1, [1], None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="is not .*/<directory>"):
            checkpointer.save_checkpoint(1, {"x": torch.ones(1)}, "/elsewhere/1")
    assert not dist.is_initialized()
