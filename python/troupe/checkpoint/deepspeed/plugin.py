"""Checkpoints in memory for a script without a line of Troupe's: `"checkpoint": {"troupe": …}` in DeepSpeed's JSON config.

DeepSpeed has no place in its config for a checkpoint engine of another package. The hooks of a worker (worker/hooks) call
`install` when a script that actor-launcher has started imports DeepSpeed; another script may call it itself.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from ..library import CheckpointError
from ..retention import KeepLatestStep
from .checkpointer import DeepSpeedCheckpointer

SETTINGS = {
    "checkpoint_dir": str,  # default: the directory of the first save or load
    "disk_interval": int,
    "keep_latest": int,  # complete steps on the disk; 0: all
    "save_timeout": int,
    "replica_count": int,
    "parity": int,
    "parity_group": int,
    "images": int,
    "copy_on_write": bool,
    "tag_prefix": str,
}


def settings_of(config: Any) -> dict[str, Any] | None:
    """What a DeepSpeed config says of Troupe; None: nothing. Raises CheckpointError for what it cannot mean."""
    of_checkpoints = config.get("checkpoint") if isinstance(config, dict) else None
    told = of_checkpoints.get("troupe", False) if isinstance(of_checkpoints, dict) else False
    if isinstance(told, bool):
        return {} if told else None
    if not isinstance(told, dict):
        raise wrong(f" is {told!r}; it is true, false or settings")
    for name, value in told.items():
        kind = SETTINGS.get(name)
        if kind is None:
            raise wrong(f" has no '{name}'; it has {', '.join(SETTINGS)}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise wrong(f".{name} is {value!r}, no {kind.__name__}")
    return dict(told)


def wrong(what: str) -> CheckpointError:
    return CheckpointError(f"DeepSpeed's config: checkpoint.troupe{what}")


class Waiting:
    """An engine until its first save or load, which all ranks make: it says where the checkpoints are."""

    def __init__(self, engine: Any, settings: dict[str, Any]):
        self._engine = engine
        self._settings = settings
        engine.save_checkpoint = functools.partial(self._first, "save_checkpoint")
        engine.load_checkpoint = functools.partial(self._first, "load_checkpoint")

    def _first(self, call: str, directory: Any, *arguments: Any, **options: Any) -> Any:
        engine, settings = self._engine, dict(self._settings)
        del engine.save_checkpoint, engine.load_checkpoint
        place = settings.pop("checkpoint_dir", None) or os.fspath(directory)
        keep = settings.pop("keep_latest", 0)
        strategy = KeepLatestStep(keep, place) if keep else None
        # The engine's own calls lead to it from now on, and keep it.
        DeepSpeedCheckpointer(engine, place, deletion_strategy=strategy, **settings)
        return getattr(engine, call)(directory, *arguments, **options)


def install() -> None:
    """Engines that are made from now on do what their config says of Troupe."""
    from deepspeed.runtime.engine import DeepSpeedEngine

    configure = DeepSpeedEngine._configure_checkpointing
    if hasattr(configure, "of_troupe"):
        return

    @functools.wraps(configure)
    def configured(self: Any, *arguments: Any, **options: Any) -> Any:
        made = configure(self, *arguments, **options)
        settings = settings_of(getattr(self._config, "_param_dict", None))
        if settings is not None:
            Waiting(self, settings)
        return made

    configured.of_troupe = True
    DeepSpeedEngine._configure_checkpointing = configured
