"""Training in memory that is killed at random moments, many times: its processes are forks, so that a life costs no start.

The launcher's part, the disk and the starts are test_killed.py's.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from few_ranks import Job, said

STEPS_OF_A_LIFE = {"torch": 8, "torch_dist": 4}


def life(
    rank: int, place: Path, how: tuple[str, int, bool], steps: int, killed: int | None, seed: int
) -> tuple[str, list[str]]:
    """What the rank ends with, and what was logged."""
    import torch
    from tiny_gpt import Training

    from troupe.checkpoint.megatron import StorageType, load_checkpoint, save_checkpoint

    fmt, tensor_parallel, distributed = how
    training = Training(str(place / "checkpoints"), tensor_parallel, distributed, ckpt_format=fmt)
    training.step, _ = load_checkpoint(*training.everything)
    (place / f"resumed-{seed}-{rank}").write_text(str(training.step))
    waits = rank == killed

    def killed_within(seconds: float) -> None:
        threading.Timer(random.Random(seed).uniform(0, seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()

    while training.step < steps:
        begun = time.monotonic()
        training.train(training.step + 1)
        assert save_checkpoint(training.step, *training.everything, storage_type=StorageType.MEMORY), said.lines
        if waits:  # in the midst of one of the next steps, however long these take
            waits = False
            killed_within((time.monotonic() - begun) * STEPS_OF_A_LIFE[fmt])
    if waits:
        killed_within(0.1)
    while killed is not None:  # until it is killed, or the other is
        time.sleep(0.01)
        torch.distributed.barrier()
    return training.digest(), said.lines


@pytest.mark.parametrize(
    "how",
    [("torch", 2, False), ("torch_dist", 2, False), ("torch", 1, True), ("torch_dist", 1, True), ("torch_dist", 2, True)],
    ids=lambda how: "-".join(str(each) for each in how),
)
def test_killed_many_times_training_ends_with_the_same_bits(
    tmp_path: Path, pytestconfig: pytest.Config, how: tuple[str, int, bool]
) -> None:
    kills = pytestconfig.getoption("--kills")
    steps, chance = STEPS_OF_A_LIFE[how[0]] * kills, random.Random()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    alone = Job(tmp_path / "a", [2])
    undisturbed = alone.run(life, tmp_path / "a", how, steps, None, 0)
    alone.close()
    job = Job(tmp_path / "b", [2])
    began = []
    for seed in range(kills):
        with pytest.raises(AssertionError, match=r"Connection closed|-9|ended|reset|Broken pipe") as left:  # by the rank that is left
            codes = job.run(life, tmp_path / "b", how, steps, chance.randrange(2), seed)
            raise AssertionError(codes)
        assert (tmp_path / "b" / f"resumed-{seed}-0").exists(), left.value
        begun = [(tmp_path / "b" / f"resumed-{seed}-{rank}").read_text() for rank in range(2)]
        assert begun[0] == begun[1]
        began.append(int(begun[0]))
    ended = job.run(life, tmp_path / "b", how, steps, None, kills)
    job.close()
    assert [one[0] for one in ended] == [one[0] for one in undisturbed]
    assert began == sorted(began) and began[-1] > 0
    assert "comes from memory" in ended[0][1][0]
    assert not (tmp_path / "b/checkpoints/latest_checkpointed_iteration.txt").exists()
    print(f"{how}: {kills} kills, lives began with {began}")
