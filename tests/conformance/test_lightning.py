"""Lightning: what is kept is what its ModelCheckpoint writes, and `fit` goes on from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
from tiny_lightning import Tiny
from torch.utils.data import TensorDataset

from troupe.checkpoint import CheckpointError, KeepLatestStep
from troupe.checkpoint.lightning import FlashCheckpoint
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler


def fit(steps: int, *callbacks: Callback, ckpt_path: Path | None = None, **more: Any) -> Tiny:
    """An epoch has eight batches."""
    lightning.seed_everything(0, verbose=False)
    model, samples = Tiny(), TensorDataset(torch.randn(32, 4))
    loader = ElasticDataLoader(samples, 4, sampler=ElasticDistributedSampler(samples, num_replicas=1, rank=0))
    trainer = lightning.Trainer(
        max_steps=steps,
        accelerator="cpu",
        callbacks=list(callbacks),
        use_distributed_sampler=False,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **more,
    )
    trainer.fit(model, loader, ckpt_path=ckpt_path)
    return model


def same(ours: Any, theirs: Any, at: str = "") -> None:
    assert type(ours) is type(theirs), at
    if isinstance(ours, torch.Tensor):
        assert torch.equal(ours, theirs), at
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs), at
        for name in ours:
            same(ours[name], theirs[name], f"{at}/{name}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), at
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{at}/{place}")
    else:
        assert ours == theirs, at


def of_training(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Without ModelCheckpoint's own paths."""
    return {name: value for name, value in checkpoint.items() if name != "callbacks"}


def test_a_file_is_what_lightning_writes_and_lightning_reads_it(tmp_path: Path):
    fit(6, ModelCheckpoint(tmp_path / "own", filename="{step}", every_n_train_steps=3, save_top_k=-1))
    fit(6, FlashCheckpoint(tmp_path / "ours", disk_steps=3))
    names = ["step=3.ckpt", "step=6.ckpt"]
    assert sorted(path.name for path in (tmp_path / "ours").glob("*.ckpt")) == names
    for name in names:
        ours, theirs = (torch.load(tmp_path / of / name) for of in ("ours", "own"))
        same(of_training(ours), of_training(theirs))
    assert Tiny.load_from_checkpoint(tmp_path / "ours/step=6.ckpt").hparams.width == 8
    native = fit(12, ckpt_path=tmp_path / "ours/step=3.ckpt", enable_checkpointing=False)
    assert native.seen == fit(12, enable_checkpointing=False).seen[3:]


@pytest.mark.parametrize("stopped", [3, 8, 11])
def test_a_second_fit_goes_on_in_the_middle_of_an_epoch_and_at_its_end(tmp_path: Path, stopped: int):
    whole = fit(20, enable_checkpointing=False)
    first = fit(stopped, FlashCheckpoint(tmp_path, disk_steps=100))
    second = fit(20, FlashCheckpoint(tmp_path, disk_steps=100, deletion_strategy=KeepLatestStep(1, tmp_path)))
    assert first.seen + second.seen == whole.seen
    assert all(torch.equal(a, b) for a, b in zip(second.parameters(), whole.parameters(), strict=True))
    assert [path.name for path in tmp_path.glob("*.ckpt")] == ["step=20.ckpt"]


def test_a_step_of_several_batches_is_saved_once(tmp_path: Path):
    saved = FlashCheckpoint(tmp_path, memory_steps=1, disk_steps=2)
    told = []
    saved._save, save = lambda trainer, storage: (told.append(trainer.global_step), save(trainer, storage)), saved._save
    fit(4, saved, accumulate_grad_batches=2)
    assert told == [1, 2, 3, 4]


def test_a_job_begins_with_the_path_that_it_is_given(tmp_path: Path):
    fit(5, FlashCheckpoint(tmp_path / "a", disk_steps=5))
    model = fit(9, FlashCheckpoint(tmp_path / "b", disk_steps=9), ckpt_path=tmp_path / "a/step=5.ckpt")
    assert model.seen[0][0] == 5
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path}/none.ckpt")):
        fit(9, FlashCheckpoint(tmp_path / "c", disk_steps=9), ckpt_path=tmp_path / "none.ckpt")


def test_a_damaged_step_is_told_and_the_one_before_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    fit(6, FlashCheckpoint(tmp_path, disk_steps=3))
    damaged = tmp_path / "step=6.ckpt"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    model = fit(7, FlashCheckpoint(tmp_path))
    assert model.seen[0][0] == 3
    assert any("step=6.ckpt" in record.getMessage() for record in caplog.records)


def test_what_lightning_has_not_made_is_refused(tmp_path: Path):
    from troupe.checkpoint import DdpCheckpointer

    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(1, {"x": torch.ones(1)})
        assert checkpointer.wait_latest_checkpoint(30)
    with pytest.raises(CheckpointError, match="a state that Lightning has not made"):
        fit(2, FlashCheckpoint(tmp_path, disk_steps=1))
    assert torch.load(tmp_path / "1/rank_0.pt")["x"] == 1


@pytest.mark.parametrize(
    ("strategy", "says", "why"),
    [
        (FSDPStrategy, {"_state_dict_type": "full"}, 'give it state_dict_type="sharded"'),
        (ModelParallelStrategy, {"_save_distributed_checkpoint": False}, "puts the whole state together at rank 0: leave it out"),
        (DeepSpeedStrategy, {}, "does not know the states of DeepSpeedStrategy"),
        (DDPStrategy, {}, "Lightning has started the ranks itself: start them with actor-launcher"),
    ],
)
def test_strategies_that_it_is_not_for_are_refused(tmp_path: Path, strategy: type, says: dict[str, Any], why: str):
    made = object.__new__(strategy)
    vars(made).update(says)
    made.cluster_environment = LightningEnvironment()
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer.__dict__["fast_dev_run"] = 0
    trainer._accelerator_connector.strategy = made
    with pytest.raises(CheckpointError, match=why):
        FlashCheckpoint(tmp_path, disk_steps=1).setup(trainer, None, "fit")


@pytest.mark.parametrize("steps", [-1, 2.5, True, "3"])
def test_numbers_that_are_none_are_refused(tmp_path: Path, steps: object):
    with pytest.raises(ValueError, match="memory_steps is .*; it is a whole number of steps, 0 for none"):
        FlashCheckpoint(tmp_path, memory_steps=steps)


def test_nothing_of_it_stays_in_the_trainer(tmp_path: Path):
    trainers = []

    class Keeps(Callback):
        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            trainers.append(trainer)

    fit(2, Keeps(), FlashCheckpoint(tmp_path, disk_steps=1))
    assert "resume_start" not in vars(trainers[0]._checkpoint_connector)
    assert "load_checkpoint" not in vars(trainers[0].strategy)
    assert json.loads((tmp_path / "dlrover_latest.txt").read_text()) == 2
