"""Transformers' Trainer with checkpoints in the time of one memory copy."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import transformers

from .flash import Flash, Options

log = logging.getLogger("troupe.checkpoint")

AnyTrainer = TypeVar("AnyTrainer", bound=transformers.Trainer)


class _Steps(transformers.TrainerCallback):
    def __init__(self, flash: Flash):
        self._flash = flash

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._flash.step_ended(args, state, control)


class FlashMixin:
    """Before a Trainer in a class's bases: its saves are kept in memory and written to the disk behind training."""

    _flash: Flash

    def train(self, resume_from_checkpoint: Any = None, *more: Any, **named: Any) -> Any:
        if _searches(self, *more, **named):
            return super().train(resume_from_checkpoint, *more, **named)  # type: ignore[misc]
        try:
            path = self._flash.resumed_from(resume_from_checkpoint)
            result = super().train(path, *more, **named)  # type: ignore[misc]
            self._flash.settle()  # by now all ranks have read what they resume from, also if there was no step to make
        finally:
            self._flash.release()
        return result

    def _save_checkpoint(self, model: Any, trial: Any, *more: Any, **named: Any) -> None:
        if _searches(self, trial):
            log.warning("while hyperparameters are searched, checkpoints are Trainer's own")
            return super()._save_checkpoint(model, trial, *more, **named)  # type: ignore[misc]
        inherited = super()._save_checkpoint  # type: ignore[misc]
        push = super()._push_from_checkpoint  # type: ignore[misc]
        return self._flash.save(lambda: inherited(model, trial, *more, **named), push)

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        if not self._flash.pushes_later():
            super()._push_from_checkpoint(checkpoint_folder)  # type: ignore[misc]

    def _load_from_checkpoint(self, *more: Any, **named: Any) -> Any:
        with self._flash.reading():
            return super()._load_from_checkpoint(*more, **named)  # type: ignore[misc]

    def _load_optimizer_and_scheduler(self, *more: Any, **named: Any) -> Any:
        with self._flash.reading():
            return super()._load_optimizer_and_scheduler(*more, **named)  # type: ignore[misc]

    def _get_output_dir(self, trial: Any) -> str:
        return self._flash.directory_of_run or super()._get_output_dir(trial)  # type: ignore[misc]

    def _load_best_model(self) -> None:
        self._flash.settle()
        super()._load_best_model()  # type: ignore[misc]

    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        """Whether the last save to disk is complete; False after `timeout` seconds. Collective. (DLRover's name.)"""
        checkpointer = self._flash.checkpointer
        return not checkpointer or checkpointer.wait_latest_checkpoint(timeout)

    def get_last_checkpoint(self) -> bool:
        """What `train(resume_from_checkpoint=…)` is given for the newest step, wherever it is. (DLRover's name; there it is a path or
        False.)"""
        return True


class FlashCkptTrainer(FlashMixin, transformers.Trainer):
    """DLRover's name. Options of checkpoints are `flash`'s."""

    def __init__(self, *args: Any, **named: Any):
        super().__init__(*args, **named)
        self._flash = Flash(self, Options())
        self.add_callback(_Steps(self._flash))


def flash(trainer: AnyTrainer, **options: Any) -> AnyTrainer:
    """The same Trainer; its checkpoints are in memory when a save returns. `options`: see `Options`.

    `trainer.train(resume_from_checkpoint=True)` goes on from the newest step, which may be in memory only, and begins if there is
    none. Raises ValueError for a Trainer that this cannot be done with (pushes of each checkpoint).
    """
    if isinstance(trainer, FlashMixin):
        raise ValueError(f"this {type(trainer).__name__} keeps its checkpoints in memory already")
    kept = Flash(trainer, Options(**options))
    kind = type(trainer)
    # A class of its own, so that what a user's class overrides is called as ever.
    trainer.__class__ = type(kind.__name__, (FlashMixin, kind), {"__module__": kind.__module__})
    trainer._flash = kept  # type: ignore[attr-defined]
    trainer.add_callback(_Steps(kept))
    return trainer


def _searches(trainer: Any, trial: Any = None, *_: Any, **named: Any) -> bool:
    return trial is not None or named.get("trial") is not None or getattr(trainer, "hp_search_backend", None) is not None
