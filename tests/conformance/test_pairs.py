"""Two checkpointers of any kinds at once in one process, which is killed at any moment of a save: each finds its own steps again.

PAIRS is how many cases are drawn, SEED of which; a case that fails tells both. Without PAIRS each landing runs six of twelve.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import few_ranks
import pytest
import torch
import torch.distributed.checkpoint as dcp
from accelerate import Accelerator
from few_ranks import Job
from lightning.pytorch.callbacks import Callback
from test_accelerate import Counter
from test_lightning import fit
from tiny_trainer import trainer
from transformers import TrainerCallback

import troupe.checkpoint
from troupe.checkpoint import DdpCheckpointer, StorageType
from troupe.checkpoint.accelerate import States
from troupe.checkpoint.dcp import DcpCheckpointer
from troupe.checkpoint.fsdp import FsdpFullCheckpointer, FsdpShardCheckpointer
from troupe.checkpoint.lightning import FlashCheckpoint
from troupe.checkpoint.transformers import flash

# Each rank is a fork of a process that has imported these.
few_ranks.context.set_forkserver_preload(["torch.distributed", "accelerate", "lightning", "tiny_trainer", "troupe.checkpoint.fsdp", "test_pairs"])
os.environ.setdefault("OMP_NUM_THREADS", "1")

PAIRS, SEED = int(os.environ.get("PAIRS", "12")), int(os.environ.get("SEED", "0"))
EACH_LANDING = PAIRS if "PAIRS" in os.environ else 6
SAVED = 2  # by both; the one that is killed is at the step after it


class Kind:
    """One directory, as a framework uses it."""

    def __init__(self, place: Path, memory: bool):
        self.place, self.storage = place, StorageType.MEMORY if memory else StorageType.DISK

    def save(self, step: int) -> None:
        raise NotImplementedError

    def found(self) -> int:
        """The newest step, whose state is this directory's own; 0: there is none."""
        raise NotImplementedError


class BegunError(Exception):
    """With the step that training begins with."""


class StillTraining(FlashCheckpoint):
    """Writes no last step to the disk: no launcher's saver is here to do so."""

    def on_train_end(self, *_: Any) -> None:
        pass


class Plain(Kind):
    kind: Callable[..., Any] = DdpCheckpointer

    def __init__(self, place: Path, memory: bool):
        super().__init__(place, memory)
        self.checkpointer = self.kind(place)

    def state(self, step: int) -> dict[str, Any]:
        return {"of": str(self.place), "step": step, "x": torch.full((1 << 12,), step + len(str(self.place)))}

    def save(self, step: int) -> None:
        assert self.checkpointer.save_checkpoint(step, self.state(step), "", storage_type=self.storage)
        assert self.storage is StorageType.MEMORY or self.checkpointer.wait_latest_checkpoint(60)

    def found(self) -> int:
        state = DdpCheckpointer.load_checkpoint(self.checkpointer)
        if not state:
            return 0
        expected = self.state(state["step"])
        assert state["of"] == expected["of"] and torch.equal(state["x"], expected["x"]), (state["of"], self.place)
        return state["step"]


class Full(Plain):
    kind = FsdpFullCheckpointer


class Dcp(Plain):
    kind = DcpCheckpointer

    def state(self, step: int) -> dict[str, Any]:
        return {"step": torch.tensor(step), "x": super().state(step)["x"]}

    def save(self, step: int) -> None:
        assert self.checkpointer.save(step, self.state(step), "", self.storage)
        assert self.storage is StorageType.MEMORY or self.checkpointer.wait_latest_checkpoint(60)

    def found(self) -> int:
        reader = self.checkpointer.get_storage_reader()
        if reader is None:
            return 0
        state = self.state(0)
        dcp.load(state, storage_reader=reader)
        step = int(state["step"])
        assert torch.equal(state["x"], self.state(step)["x"])
        return step


class Sharded(Dcp):
    kind = FsdpShardCheckpointer


class OfAccelerate(Kind):
    def __init__(self, place: Path, memory: bool):
        super().__init__(place, memory)
        accelerator, self.counter, model = Accelerator(cpu=True), Counter(), torch.nn.Linear(20, 20)
        accelerator._models.clear()  # of another one in this process: they share a state
        accelerator._custom_objects.clear()
        accelerator.prepare(model)
        accelerator.register_for_checkpointing(self.counter)
        self.states = States(accelerator, place)

    def save(self, step: int) -> None:
        self.counter.count = step + len(str(self.place))
        assert self.states.save(step, self.storage)
        assert self.storage is StorageType.MEMORY or self.states.wait(60)

    def found(self) -> int:
        step = self.states.load() or 0
        assert not step or self.counter.count == step + len(str(self.place))
        return step


class OfTrainer(Kind):
    def trained(self, steps: int, *callbacks: TrainerCallback) -> None:
        memory = self.storage is StorageType.MEMORY
        how = {"save_strategy": "no"} if memory else {"save_steps": 1}
        made = flash(trainer(self.place, steps, callbacks=list(callbacks), **how), memory_steps=int(memory))
        made.train(resume_from_checkpoint=True)  # which may be the beginning

    def save(self, step: int) -> None:
        self.trained(step)

    def found(self) -> int:
        class Looks(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                raise BegunError(state.global_step)

        with pytest.raises(BegunError) as begun:
            self.trained(100, Looks())
        return begun.value.args[0]


class OfLightning(Kind):
    def save(self, step: int) -> None:
        if self.storage is StorageType.MEMORY:
            fit(step, StillTraining(self.place, memory_steps=1))
        else:
            fit(step, FlashCheckpoint(self.place, disk_steps=1))

    def found(self) -> int:
        class Looks(Callback):
            def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
                raise BegunError(trainer.global_step)

        with pytest.raises(BegunError) as begun:
            fit(100, FlashCheckpoint(self.place), Looks())
        return begun.value.args[0]


KINDS: dict[str, type[Kind]] = {
    "ddp": Plain,
    "full": Full,
    "dcp": Dcp,
    "sharded": Sharded,
    "accelerate": OfAccelerate,
    "trainer": OfTrainer,
    "lightning": OfLightning,
}


class Moments:
    """Of a save: each call and return in the code of checkpoints. Deterministic, as no clock is."""

    code = os.path.dirname(troupe.checkpoint.__file__)

    def __init__(self, kill_at: int | None):
        self.passed, self.kill_at = 0, kill_at
        sys.setprofile(self)

    def __call__(self, frame: Any, *_: Any) -> None:
        if frame.f_code.co_filename.startswith(self.code):
            if self.passed == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.passed += 1


def opened(kinds: tuple[str, str], place: str, memory: bool) -> list[Kind]:
    return [KINDS[kind](Path(place) / name, memory) for name, kind in zip("ab", kinds, strict=True)]


def saves(rank: int, kinds: tuple[str, str], place: str, memory: bool, kill_at: int | None) -> int:
    both = opened(kinds, place, memory)
    for one in both:
        one.save(SAVED)
    moments = Moments(kill_at)
    try:
        both[1].save(SAVED + 1)
    finally:
        sys.setprofile(None)
    return moments.passed


def finds(rank: int, kinds: tuple[str, str], place: str, memory: bool) -> list[int]:
    return [one.found() for one in opened(kinds, place, memory)]


def drawn() -> list[Any]:
    """Each kind comes first and second equally often; PAIRS=98 and more has every pair, with and without memory."""
    chance, cases, names = random.Random(SEED), [], list(KINDS)
    every = [(one, other, memory) for one in names for other in names for memory in (True, False)]
    chance.shuffle(every)
    for number in range(PAIRS):
        one, other, memory = every[number % len(every)]
        name = f"{one}-{other}-{'memory' if memory else 'disk'}-{number}"
        rare = [pytest.mark.long] if number >= EACH_LANDING else []
        cases.append(pytest.param((one, other), memory, chance.random(), id=name, marks=rare))
    return cases


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[bool], Job]]:
    jobs = []

    def made(memory: bool) -> Job:
        (tmp_path / f"job{len(jobs)}").mkdir()
        jobs.append(Job(tmp_path / f"job{len(jobs)}", [1], memory))
        return jobs[-1]

    yield made
    for one in jobs:
        one.close()


@pytest.mark.parametrize(("kinds", "memory", "moment"), drawn())
def test_a_kill_at_any_moment_of_a_save_costs_each_directory_nothing(
    make: Callable[[bool], Job], tmp_path: Path, kinds: tuple[str, str], memory: bool, moment: float
) -> None:
    [moments] = make(memory).run(saves, kinds, str(tmp_path / "whole"), memory, None)
    assert moments > 20
    # Where it has to wait for the disk it may look once more or less.
    kill_at = int(moment * (moments - 10))
    job, place = make(memory), str(tmp_path / "killed")
    told = f"SEED={SEED}, killed at moment {kill_at} of {moments}"
    assert job.run(saves, kinds, place, memory, kill_at) == [-signal.SIGKILL], told
    [found] = job.run(finds, kinds, place, memory)
    assert found[0] == SAVED and found[1] in (SAVED, SAVED + 1), (found, told)
    # What was whole in another directory of the same process is there, too, and is not this one's.
    [found] = make(memory).run(finds, kinds, str(tmp_path / "new"), memory)
    assert found == [0, 0], (found, told)
