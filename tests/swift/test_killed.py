"""`swift sft` that is killed at random moments, against one that is not: the same bits, and the same curve."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from conftest import Start
from killing import WITHIN, kill
from launchers import Run, until
from sft import SCRIPT, arguments, require_same_end, resumed, runs, tracked

STEPS_OF_A_LIFE = 30  # more than a life makes before it is killed
SAVE_STEPS = 2
KINDS = {
    "full": {"tuner_type": "full"},
    "lora": {"tuner_type": "lora", "lora_rank": 4, "target_modules": "all-linear"},
}


def trained(start: Start, data: Path, output: Path, world: int, steps: int, kind: str, kills: int, seed: int = 0) -> tuple[Run, Path]:
    """The job, and its last checkpoint."""
    more = KINDS[kind] | {"save_total_limit": 3, "lr_scheduler_type": "cosine"}
    command = [SCRIPT, *arguments(data, output, steps, SAVE_STEPS, **more)]
    run = start(command, procs=world, restarts=kills)
    chance = random.Random(seed)
    for life in range(kills):
        print(f"life {life}: {kill(run, output, life, world, chance)}")
        until(lambda life=life: f"(restart {life + 1} of {kills})" in run.out() + run.err(), WITHIN, "the launcher sees it")
    assert run.wait(WITHIN) == [0], run.err()[-4000:]
    assert run.leftovers() == []
    return run, runs(output)[-1] / f"checkpoint-{steps}"


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments_it_ends_with_the_same_bits(
    start: Start, data: Path, tmp_path: Path, pytestconfig: pytest.Config, kind: str, world: int
) -> None:
    kills = pytestconfig.getoption("--kills")
    steps = STEPS_OF_A_LIFE * (kills + 1)
    _, one = trained(start, data, tmp_path / "one", world, steps, kind, 0)
    _, other = trained(start, data, tmp_path / "other", world, steps, kind, 0)
    require_same_end(one, other)  # ms-swift itself is deterministic
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    run, killed = trained(start, data, tmp_path / "killed", world, steps, kind, kills, seed)
    require_same_end(one, killed)
    went_on = resumed(run.out() + run.err())
    assert went_on, "no life went on where the one before it was"
    steps_reached = [step for _, step in went_on]
    assert steps_reached == sorted(steps_reached)
    assert tracked(killed.parent) == steps
    print(f"{kind}, {world} ranks: {kills} kills, lives went on from {went_on}")
