"""Training in memory that is killed at random moments, many times: its processes are forks, so that a life costs no start.

The launcher's part, the disk and the starts are test_killed.py's.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from launchers import ROOT

sys.path.insert(0, str(ROOT / "tests/conformance"))
os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import few_ranks
from few_ranks import Job, context, said

few_ranks.PATIENCE = 600  # the first life waits for the imports
context.set_forkserver_preload(["deepspeed", "torch.distributed", "troupe.checkpoint", "training"])

STEPS_OF_A_LIFE = 25
LONGEST = 0.5  # seconds until a kill


def life(rank: int, place: Path, stage: int, steps: int, killed: int | None, seed: int) -> tuple[str, list[int], list[str]]:
    """What the rank ends with; the step that it began with, and what was logged."""
    from training import digest, engine_of, train

    from troupe.checkpoint import StorageType
    from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

    engine = engine_of(stage, "checkpointer")
    with DeepSpeedCheckpointer(engine, place) as checkpointer:
        path, state = checkpointer.load_checkpoint(place)
        step = state["step"] if path else 0
        (place / f"resumed-{seed}-{rank}").write_text(str(step))
        if rank == killed:
            delay = random.Random(seed).uniform(0, LONGEST)
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        while step < steps:
            step += 1
            train(engine, step)
            assert checkpointer.save_checkpoint(place, client_state={"step": step}, storage_type=StorageType.MEMORY), said.lines
        while killed is not None:  # until it is killed
            time.sleep(0.01)
        return digest(engine), [step], said.lines


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_killed_many_times_training_ends_with_the_same_bits(tmp_path: Path, pytestconfig: pytest.Config, stage: int) -> None:
    kills = 7 * pytestconfig.getoption("--kills")
    steps, chance = STEPS_OF_A_LIFE * kills, random.Random()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    alone = Job(tmp_path / "a", [2])
    undisturbed = alone.run(life, tmp_path / "a", stage, steps, None, 0)
    alone.close()
    job = Job(tmp_path / "b", [2])
    began = []
    for seed in range(kills):
        with pytest.raises(AssertionError, match=r"Connection closed|-9|ended|reset") as left:  # by the rank that is left
            codes = job.run(life, tmp_path / "b", stage, steps, chance.randrange(2), seed)
            raise AssertionError(codes)
        assert (tmp_path / "b" / f"resumed-{seed}-0").exists(), left.value
        begun = [(tmp_path / "b" / f"resumed-{seed}-{rank}").read_text() for rank in range(2)]
        assert begun[0] == begun[1]
        began.append(int(begun[0]))
    assert isinstance(undisturbed[0], tuple), undisturbed
    ended = job.run(life, tmp_path / "b", stage, steps, None, kills)
    job.close()
    assert [one[0] for one in ended] == [one[0] for one in undisturbed]
    assert began == sorted(began) and began[-1] > 0
    assert "comes from memory" in ended[0][2][0]
    print(f"stage {stage}: {kills} kills, lives began with {began}")
