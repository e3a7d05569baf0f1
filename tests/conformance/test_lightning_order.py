"""Lightning beside its own ModelCheckpoint: what `test(ckpt_path="best")`, loggers, a second `fit` and runs without us see and leave."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from tiny_lightning import Tiny
from torch.utils.data import DataLoader, TensorDataset

from troupe.checkpoint.lightning import FlashCheckpoint
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler


class Measured(Tiny):
    """Validated and tested by a number that its weights alone decide."""

    def score(self) -> torch.Tensor:
        return sum(one.detach().double().square().sum() for one in self.parameters()).float()

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("score", self.score() * (-1) ** self.global_step)

    def test_step(self, batch: Any, _: int) -> None:
        self.log("tested", self.score())

    def predict_step(self, batch: Any, _: int) -> torch.Tensor:
        return self.layers(batch[0])


def data() -> TensorDataset:
    return TensorDataset(torch.randn(32, 4, generator=torch.Generator().manual_seed(0)))


def loader() -> ElasticDataLoader:
    samples = data()
    return ElasticDataLoader(samples, 4, sampler=ElasticDistributedSampler(samples, num_replicas=1, rank=0))


def trainer(place: Path, steps: int, *callbacks: Callback, **more: Any) -> lightning.Trainer:
    lightning.seed_everything(0, verbose=False)
    return lightning.Trainer(
        **{"max_steps": steps, "accelerator": "cpu", "callbacks": list(callbacks), "use_distributed_sampler": False, "logger": False}
        | {"enable_progress_bar": False, "enable_model_summary": False, "default_root_dir": place, "val_check_interval": 2} | more,
    )  # fmt: skip


def best(place: Path, **more: Any) -> ModelCheckpoint:
    return ModelCheckpoint(place / "best", monitor="score", mode="max", filename="{step}-best", save_last=True, **more)


KINDS = ["flash first", "flash last", "without us"]


def story(place: Path, kind: str) -> list[Any]:
    """All that a script sees that fits, fits again, and evaluates."""
    flash = [] if kind == "without us" else [FlashCheckpoint(place / "flash", memory_steps=1, disk_steps=3)]
    order = [*flash, best(place)] if kind == "flash first" else [best(place), *flash]
    made, model = trainer(place, 8, *order), Measured()
    rows: list[Any] = []
    val, other = DataLoader(data(), 16), DataLoader(data(), 8)
    with pytest.raises(ValueError, match="is not configured to save the best model"):
        made.test(Measured(), other, ckpt_path="best", verbose=False)
    made.fit(model, loader(), val)
    first = made.checkpoint_callback
    rows += [type(first), first.monitor, first.best_model_path, first.last_model_path, first.best_model_score, first.best_k_models]
    rows += [made.test(dataloaders=other, ckpt_path=path, verbose=False) for path in ("best", "last", None)]
    rows.append(made.validate(dataloaders=val, ckpt_path="best", verbose=False))
    rows.append(made.predict(dataloaders=other, ckpt_path="best"))
    made.fit_loop.epoch_loop.max_steps = 12
    made.fit(model, loader(), val)  # goes on
    rows += [made.global_step, first.best_model_path, model.seen]
    again = trainer(place, 16, *[type(one)(**vars_of(one, place)) for one in order])
    again.fit(Measured(), loader(), val, ckpt_path="last")
    rows += [again.global_step, again.checkpoint_callback.best_model_path]
    rows += again.test(dataloaders=other, ckpt_path="best", verbose=False)
    rows.append(sorted(path.name for path in (place / "best").iterdir()))
    return rows


def vars_of(one: Callback, place: Path) -> dict[str, Any]:
    if isinstance(one, FlashCheckpoint):
        return {"dirpath": place / "flash", "memory_steps": 1, "disk_steps": 3}
    return {"dirpath": place / "best", "monitor": "score", "mode": "max", "filename": "{step}-best", "save_last": True}


def plain(value: Any, place: Path) -> str:
    return repr(value).replace(str(place), "PLACE")


def test_scripts_see_what_they_see_without_us_in_any_order(tmp_path: Path):
    rows = {kind: [plain(row, tmp_path / kind) for row in story(tmp_path / kind, kind)] for kind in KINDS}
    assert rows["flash first"] == rows["without us"]
    assert rows["flash last"] == rows["without us"]


def test_alone_it_is_asked_for_paths_as_a_callback_without_a_metric(tmp_path: Path):
    made, model = trainer(tmp_path, 8, FlashCheckpoint(tmp_path, memory_steps=1, disk_steps=3)), Measured()
    other = DataLoader(data(), 8)
    with pytest.raises(ValueError, match="is not configured to save the best model"):
        made.test(Measured(), other, ckpt_path="best", verbose=False)
    made.fit(model, loader())
    expected = model.score()
    assert made.checkpoint_callback.best_model_path == made.checkpoint_callback.last_model_path == str(tmp_path / "step=8.ckpt")
    with torch.no_grad():
        for one in model.parameters():
            one.zero_()
    assert made.test(dataloaders=other, verbose=False) == [{"tested": pytest.approx(float(expected))}]
    assert Measured.load_from_checkpoint(made.checkpoint_callback.best_model_path).score() == expected
    memory = trainer(tmp_path / "m", 2, FlashCheckpoint(tmp_path / "m", memory_steps=1))
    memory.fit(Measured(), loader())
    with pytest.raises(ValueError, match="is not configured to save the best model"):
        memory.test(dataloaders=other, ckpt_path="best", verbose=False)


def test_loggers_hear_of_the_last_step_when_it_is_complete(tmp_path: Path):
    heard = []

    class Logs(CSVLogger):
        def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
            heard.append(torch.load(checkpoint_callback.best_model_path)["global_step"])

    trainer(tmp_path, 5, FlashCheckpoint(tmp_path / "c", disk_steps=2), logger=Logs(tmp_path)).fit(Measured(), loader())
    assert heard == [5]


# ---- Runs without us ----


def own(place: Path, to: int, ckpt_path: Path | None, name: str = "{step}") -> None:
    """As a run without FlashCheckpoint goes on."""
    saved = ModelCheckpoint(place, filename=name, every_n_train_steps=2, save_top_k=-1)
    trainer(place, to, saved).fit(Measured(), loader(), ckpt_path=ckpt_path)


def ours(place: Path, to: int, ckpt_path: Path | None = None) -> int:
    """The step that it began with."""
    model = Measured()
    trainer(place, to, FlashCheckpoint(place, disk_steps=2)).fit(model, loader(), ckpt_path=ckpt_path)
    return model.seen[0][0] if model.seen else to


@pytest.mark.parametrize("name", ["{step}", "{epoch}-{step}", "mine-{epoch}"])
def test_a_run_that_went_on_without_us_is_gone_on_from(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]):
    assert ours(tmp_path, 4) == 0
    own(tmp_path, 8, tmp_path / "step=4.ckpt", name)
    assert ours(tmp_path, 12) == 8
    assert "training goes on from step 8" in capfd.readouterr().err
    assert ours(tmp_path, 14) == 12
    assert torch.load(tmp_path / "step=14.ckpt")["global_step"] == 14


def test_what_training_comes_to_again_is_set_aside_and_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    ours(tmp_path, 4)
    own(tmp_path, 8, tmp_path / "step=4.ckpt")
    theirs = (tmp_path / "step=6.ckpt").read_bytes()
    assert ours(tmp_path, 8, tmp_path / "step=4.ckpt") == 4
    assert (tmp_path / "set-aside/step=6.ckpt").read_bytes() == theirs
    assert ours(tmp_path, 10) == 8


@pytest.mark.parametrize("seed", range(4))
def test_histories_of_two_makers_are_gone_on_from_by_the_step(tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture):
    chance, top, count = random.Random(seed), 0, itertools.count()
    for _ in range(5):
        what = chance.choice(["ours", "own", "damage"])
        if what == "damage":
            junk = tmp_path / f"junk-{next(count)}-step={top + 100}.ckpt"
            junk.write_bytes(b"PK" + bytes(100))
            continue
        to = top + 2 * chance.randint(1, 2)
        if what == "ours":
            assert ours(tmp_path, to) == top
        else:
            files = [path for path in tmp_path.glob("*.ckpt") if re.search(rf"step={top}\.ckpt$", path.name)]
            own(tmp_path, to, files[0] if files else None, chance.choice(["{step}", "{epoch}-{step}"]))
        top = to
    assert ours(tmp_path, top + 2) == top
