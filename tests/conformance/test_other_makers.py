"""Checkpoints of a framework itself beside Troupe's: the newest of all is gone on from, and what training passes is saved again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
import torch
from test_accelerate import prepared, step
from tiny_trainer import losses, trainer, weights
from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from troupe.checkpoint import CheckpointError, complete_steps
from troupe.checkpoint.accelerate import States
from troupe.checkpoint.transformers import flash


class Begins(TrainerCallback):
    step = -1

    def on_train_begin(self, args, state, control, **_):
        self.step = state.global_step


def trained(place: Path, to: int, *, ours: bool, resume: bool | Path = True, **more):
    """The Trainer at its end, and the step that it began with."""
    begins = Begins()
    made = trainer(place, to, callbacks=[begins], **more)
    if ours:
        flash(made).train(resume_from_checkpoint=resume if isinstance(resume, bool) else str(resume))
        made._flash.close()
    else:
        last = get_last_checkpoint(str(place)) if place.exists() else None
        made.train(resume_from_checkpoint=last if resume is True else resume if resume is False else str(resume))
    return made, begins.step


def told_of(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


def test_a_run_that_went_on_without_us_is_gone_on_from(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    whole = [trained(tmp_path / "whole", to, ours=False) for to in (10, 20, 30)][-1][0]
    place = tmp_path / "c"
    trained(place, 10, ours=True)
    trained(place, 20, ours=False)
    assert complete_steps(str(place)) == [10, 5]
    last, begun = trained(place, 30, ours=True)
    assert begun == 20
    assert f"training goes on from step 20 in {place}/checkpoint-20" in capfd.readouterr().err
    assert complete_steps(str(place)) == [30, 25, 10, 5]
    assert losses(last) == losses(whole)
    assert all(torch.equal(t, weights(whole)[n]) for n, t in weights(last).items())


def test_what_training_comes_to_again_is_set_aside_and_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    place = tmp_path / "c"
    trained(place, 10, ours=True)
    trained(place, 20, ours=False)
    theirs = (place / "checkpoint-15/trainer_state.json").read_bytes()
    _, begun = trained(place, 20, ours=True, resume=place / "checkpoint-10")
    assert begun == 10
    assert complete_steps(str(place)) == [20, 15, 10, 5]
    assert (place / "set-aside/checkpoint-15/trainer_state.json").read_bytes() == theirs
    assert f"checkpoint-15 is {place}/set-aside/checkpoint-15 now" in told_of(caplog)
    assert trained(place, 25, ours=True)[1] == 20  # what was set aside is no step


def test_a_directory_that_a_run_began_anew_in_is_gone_on_from(tmp_path: Path):
    """Markers of steps that are gone hide nothing that another maker has put there."""
    place = tmp_path / "c"
    trained(place, 10, ours=True)
    for path in place.glob("checkpoint-*"):
        shutil.rmtree(path)
    trained(place, 10, ours=False)
    assert trained(place, 15, ours=True)[1] == 10
    assert complete_steps(str(place)) == [15]


class Directory:
    """A model of an output directory: by number, of whom, and whether it can be read."""

    def __init__(self, chance: random.Random, place: Path):
        self.chance, self.place, self.top = chance, place, 0
        self.steps: dict[int, tuple[str, bool]] = {}
        self.tracked = False  # a tracker names a step of ours

    def expected(self) -> int | None:
        """By Trainer's own rule: the highest number that is whole. None: there are only such as cannot be read, or a tracker names one
        that is gone."""
        good = [number for number, (_, whole) in self.steps.items() if whole]
        return max(good, default=None if self.tracked else 0)

    def go_on(self) -> None:
        ours = self.chance.random() < 0.6
        newest = self.expected()
        if newest is None or (not ours and newest != max(self.steps, default=0)):
            return  # Trainer itself takes the highest, whole or not
        to = newest + 5 * self.chance.randint(1, 2)
        _, begun = trained(self.place, to, ours=ours)
        assert begun == newest, self.steps
        self.tracked |= ours
        for number in range(begun + 5, to + 1, 5):
            self.steps[number] = ("ours" if ours else "theirs", True)
        names = {int(path.name.split("-")[1]) for path in self.place.glob("checkpoint-*")}
        assert set(self.steps) == names
        found = {number for number, (of, whole) in self.steps.items() if of == "ours" and whole}
        assert found <= set(complete_steps(str(self.place)))

    def damage(self) -> None:
        """The newest one, as by a crash: cut short, or never written to its end."""
        if not self.steps:
            return
        newest = max(self.steps)
        path = self.place / f"checkpoint-{newest}"
        if self.chance.random() < 0.5 and self.steps[newest][0] == "theirs":
            (path / "trainer_state.json").unlink()
        else:
            file = path / "optimizer.pt"
            file.write_bytes(file.read_bytes()[:-100])
        self.steps[newest] = (self.steps[newest][0], False)

    def lose(self) -> None:
        """One that was removed by hand."""
        if self.steps:
            number = self.chance.choice(sorted(self.steps))
            shutil.rmtree(self.place / f"checkpoint-{number}")
            del self.steps[number]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))])
def test_histories_of_two_makers_are_gone_on_from_by_trainers_rule(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    directory = Directory(chance, tmp_path / "c")
    directory.go_on()
    for _ in range(6):
        chance.choice([directory.go_on, directory.go_on, directory.damage, directory.lose])()
    if (last := directory.expected()) is None:
        with pytest.raises(CheckpointError, match="can be read"):
            trained(tmp_path / "c", 100, ours=True)
    else:
        assert trained(tmp_path / "c", last + 5, ours=True)[1] == last


def test_states_of_accelerate_itself_are_gone_on_from(tmp_path: Path):
    accelerator, model, optimizer, counter = prepared()
    states = States(accelerator, tmp_path)
    step(accelerator, model, optimizer)
    assert states.save(1) and states.wait(60)
    step(accelerator, model, optimizer)
    counter.count = 2
    accelerator.save_state(str(tmp_path / "checkpoint-2"))
    expected = [tensor.clone() for tensor in model.parameters()]
    (tmp_path / "checkpoint-3").mkdir()  # begun, and cut off
    step(accelerator, model, optimizer)
    assert states.load() == 2 and counter.count == 2
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))
    assert states.save(3) and states.wait(60)
    assert complete_steps(str(tmp_path)) == [3, 1]
    states.close()
