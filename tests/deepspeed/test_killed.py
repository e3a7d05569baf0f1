"""Training with ZeRO that is killed at random moments, against one that is not: the same bits at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Start

STEPS_OF_A_LIFE = 40  # about as many as a life makes before it is killed


def digests(place: Path) -> list[str]:
    return [json.loads((place / f"done-{rank}.json").read_text())["digest"] for rank in range(2)]


def trained(start: Start, place: Path, stage: int, steps: int, kills: int, how: str) -> list[str]:
    place.mkdir()
    script = str(Path(__file__).with_name("training.py"))
    run = start([script, str(place), str(stage), str(steps), str(kills), how], procs=2, restarts=kills)
    assert run.wait(120 + 60 * kills) == [0], run.err()[-4000:]
    assert run.leftovers() == []
    return digests(place)


@pytest.mark.parametrize("how", ["checkpointer", "config"])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_killed_at_random_moments_training_ends_with_the_same_bits(
    start: Start, tmp_path: Path, pytestconfig: pytest.Config, stage: int, how: str
) -> None:
    kills = pytestconfig.getoption("--kills")
    steps = STEPS_OF_A_LIFE * max(2, kills)
    undisturbed = trained(start, tmp_path / "undisturbed", stage, steps, 0, how)
    assert trained(start, tmp_path / "killed", stage, steps, kills, how) == undisturbed
    killed = tmp_path / "killed"
    lives = [[json.loads((killed / f"{life}-{rank}.json").read_text()) for rank in range(2)] for life in range(1, kills + 1)]
    for one, other in lives:
        assert one["resumed"] == other["resumed"]
        assert not one["resumed"] or f"rank 0: step {one['resumed']} comes from memory" in one["told"]
    resumed = [one["resumed"] for one, _ in lives]
    assert resumed == sorted(resumed) and resumed[-1] > 0, "no life went on where the one before it was"
    latest = (killed / "checkpoints/latest").read_text().strip()
    assert (killed / "checkpoints" / latest / "troupe-manifest.json").exists()
