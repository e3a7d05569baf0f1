"""Training with Megatron that is killed at random moments, against one that is not: the same bits at the end."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from frameworks import Start

STEPS_OF_A_LIFE = {"torch": 25, "torch_dist": 12}  # about as many as a life makes before it is killed


def digests(place: Path) -> list[str]:
    return [json.loads((place / f"done-{rank}.json").read_text())["digest"] for rank in range(2)]


def trained(start: Start, place: Path, how: tuple[str, str, str], steps: int, kills: int) -> list[str]:
    place.mkdir()
    script = str(Path(__file__).with_name("training.py"))
    run = start([script, str(place), *how, str(steps), str(kills)], procs=2, restarts=kills)
    assert run.wait(240 + 60 * kills) == [0], run.err()[-4000:]
    assert run.leftovers() == []
    return digests(place)


@pytest.mark.parametrize("how", [("torch", "2", "false"), ("torch_dist", "2", "false"), ("torch_dist", "1", "true")], ids="-".join)
def test_killed_at_random_moments_training_ends_with_the_same_bits(
    start: Start, tmp_path: Path, pytestconfig: pytest.Config, how: tuple[str, str, str]
) -> None:
    kills = pytestconfig.getoption("--kills")
    steps = STEPS_OF_A_LIFE[how[0]] * max(2, kills)
    undisturbed = trained(start, tmp_path / "undisturbed", how, steps, 0)
    assert trained(start, tmp_path / "killed", how, steps, kills) == undisturbed
    killed = tmp_path / "killed"
    lives = [[json.loads((killed / f"{life}-{rank}.json").read_text()) for rank in range(2)] for life in range(1, kills + 1)]
    for one, other in lives:
        assert one["resumed"] == other["resumed"]
        assert not one["resumed"] or f"rank 0: step {one['resumed']} comes from memory" in one["told"]
    resumed = [one["resumed"] for one, _ in lives]
    print(f"{' '.join(how)}: {kills} kills, lives began with {resumed}")
    assert resumed == sorted(resumed) and resumed[-1] > 0, "no life went on where the one before it was"
    latest = int((killed / "checkpoints/latest_checkpointed_iteration.txt").read_text())
    step = killed / f"checkpoints/iter_{latest:07d}"
    assert latest == steps - steps % 10 and (step / "troupe-manifest.json").exists()
    if how[0] == "torch_dist":
        assert pickle.loads((step / ".metadata").read_bytes()).state_dict_metadata
