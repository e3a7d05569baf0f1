"""ms-swift with `--callbacks deepspeed_elastic` that is killed at random moments, against one that is not: the same bits, and the same curve."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest
import torch
from conftest import Start
from launchers import until

if importlib.util.find_spec("deepspeed") is None or importlib.util.find_spec("deepspeed.elasticity") is None:
    pytest.skip("ms-swift's callback needs a DeepSpeed that has elasticity: see scripts/frameworks/swift.txt", allow_module_level=True)

from elastic_training import UCP, Training, last
from killing import WITHIN, kill
from sft import curve, resumed, runs, same, weights

STEPS_OF_A_LIFE = 30  # more than a life makes before it is killed
SAVE_STEPS = 2
STEP_TAKES = 0.03  # seconds, at least
WORLD = 2


def test_killed_at_random_moments_it_ends_with_the_same_bits(
    start: Start, data: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills = pytestconfig.getoption("--kills")
    steps = STEPS_OF_A_LIFE * (kills + 1)
    how = {"save_total_limit": 3, "lr_scheduler_type": "cosine"}
    training = Training(start, data, tmp_path, 2, steps, SAVE_STEPS)
    alone = runs(training.made_alone(**how))[-1] / f"checkpoint-{steps}"
    output = tmp_path / "output"
    run = training.run(output, STEP_TAKES, how, restarts=kills, options=UCP)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for life in range(kills):
        print(f"life {life}: {kill(run, output, life, WORLD, chance)}")
        until(lambda life=life: f"(restart {life + 1} of {kills})" in run.out() + run.err(), WITHIN, "the launcher sees it")
    assert run.wait(WITHIN) == [0], run.err()[-4000:]
    assert run.leftovers() == []
    went_on = resumed(run.out() + run.err())
    print(f"{kills} kills, lives went on from {went_on}")
    steps_reached = [step for _, step in went_on]
    assert steps_reached == sorted(steps_reached) and steps_reached[-1] > 0, "no life went on where the one before it was"
    assert last(output) == steps
    killed = runs(output)[-1] / f"checkpoint-{steps}"
    assert curve(killed) == curve(alone)
    same(weights(killed), weights(alone), "weights")
    for rank in range(WORLD):
        name = f"global_step{steps}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        ours, theirs = (torch.load(at / name, weights_only=False) for at in (killed, alone))
        same(ours, theirs, name)
        random_numbers = f"rng_state_{rank}.pth"
        same(*(torch.load(at / random_numbers, weights_only=False) for at in (killed, alone)), random_numbers)
