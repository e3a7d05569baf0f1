"""Lightning's checkpoints in the time of one memory copy.

    trainer = Trainer(callbacks=[FlashCheckpoint("ckpt", memory_steps=1, disk_steps=100)])
    trainer.fit(model)               # goes on from the newest step, which may be in memory only
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from .ddp import DdpCheckpointer
from .library import CheckpointError
from .retention import DeletionStrategy, StorageType

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:  # the same under its older name
    from pytorch_lightning.callbacks import Checkpoint
    from pytorch_lightning.strategies import DDPStrategy, DeepSpeedStrategy, SingleDeviceStrategy
else:
    from lightning.pytorch.callbacks import Checkpoint
    from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy, SingleDeviceStrategy

log = logging.getLogger("troupe.checkpoint")


class FlashCheckpoint(Checkpoint):
    """In the place of ModelCheckpoint, or beside one that keeps the best: saves after steps of the optimizer, and has `fit` go on from
    the newest save.

    `memory_steps`: into memory, after every so many steps; `disk_steps`: to `<dirpath>/step=<step>.ckpt` as well, which Lightning
    reads as its own, and once more at the end of `fit`. 0: not. `options` as for DdpCheckpointer. Raises ValueError for wrong
    arguments.

    Where `fit` is given a `ckpt_path`, the job begins with that; workers that are started again have something newer in memory, which
    is taken.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike,
        *,
        memory_steps: int = 0,
        disk_steps: int = 0,
        deletion_strategy: DeletionStrategy | None = None,
        save_timeout: float = 600,
        images: int = 2,
        copy_on_write: bool = False,
    ):
        for name, steps in (("memory_steps", memory_steps), ("disk_steps", disk_steps)):
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
                raise ValueError(f"{name} is {steps!r}; it is a whole number of steps, 0 for none")
        self.memory_steps = memory_steps
        self.disk_steps = disk_steps
        self._open = functools.partial(
            DdpCheckpointer,
            os.path.abspath(dirpath),
            deletion_strategy=deletion_strategy,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
        )
        self._save_timeout = save_timeout
        self._checkpointer: DdpCheckpointer | None = None
        self._newest = 0  # step that was saved or begun with
        self._newest_on_disk = 0

    # ---- Lightning's hooks, each called by all ranks ----

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raises CheckpointError for a strategy whose ranks have parts of the state."""
        if stage != "fit" or trainer.fast_dev_run:
            return
        _require_whole_states(trainer.strategy)
        self._checkpointer = self._open()
        connector = trainer._checkpoint_connector
        # What `fit` resumes from is decided before there are ranks that could agree on it; it is read here.
        connector.resume_start = functools.partial(self._resume, trainer, type(connector).resume_start)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        step = trainer.global_step
        if step <= self._newest:  # gradients are accumulated
            return
        # After the end an epoch that was cut off by `max_steps` counts as a whole one.
        is_last = trainer.should_stop or step >= trainer.max_steps > 0
        if self.disk_steps and (is_last or step % self.disk_steps == 0):
            self._save(trainer, StorageType.DISK)
        elif self.memory_steps and step % self.memory_steps == 0:
            self._save(trainer, StorageType.MEMORY)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.disk_steps and trainer.global_step > self._newest_on_disk:
            self._save(trainer, StorageType.DISK)
        self.wait_latest_checkpoint(self._save_timeout)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        vars(trainer._checkpoint_connector).pop("resume_start", None)
        if self._checkpointer:
            self._checkpointer.close()
        self._checkpointer = None

    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        """Whether the last save to disk is complete; False after `timeout` seconds. Collective."""
        return not self._checkpointer or self._checkpointer.wait_latest_checkpoint(timeout)

    # ---- Saving and resuming ----

    def _save(self, trainer: Any, storage: StorageType) -> None:
        if not (checkpointer := self._checkpointer):
            return
        step = trainer.global_step
        self._newest = step
        state = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        path = os.path.join(checkpointer.place, f"step={step}.ckpt")
        kept = checkpointer.save_checkpoint(step, state, path, storage)
        if not kept and storage is StorageType.DISK:
            # It may be that all memory holds what is still being written.
            checkpointer.wait_latest_checkpoint(self._save_timeout)
            kept = checkpointer.save_checkpoint(step, state, path, storage)
        if not kept:
            log.error("step %d is not kept, and training goes on without it", step)
        elif storage is StorageType.DISK:
            self._newest_on_disk = step

    def _resume(
        self,
        trainer: Any,
        native: Callable[..., None],
        checkpoint_path: str | os.PathLike | None = None,
        weights_only: bool | None = None,
    ) -> None:
        """Lightning's own way, with what is newest in the place of the file."""
        assert self._checkpointer
        connector, strategy = trainer._checkpoint_connector, trainer.strategy
        path = os.fspath(checkpoint_path) if checkpoint_path else ""
        state = self._checkpointer.load_checkpoint(path, weights_only=weights_only is not False)
        if not state:
            return native(connector, None)
        if not isinstance(state, dict) or "pytorch-lightning_version" not in state:
            raise CheckpointError(f"{path or self._checkpointer.place} has a state that Lightning has not made")
        self._newest = self._newest_on_disk = state["global_step"]
        strategy.load_checkpoint = lambda *_, **__: state
        try:
            native(connector, path or f"step {self._newest} of {self._checkpointer.place}")
        finally:
            del strategy.load_checkpoint


def _require_whole_states(strategy: Any) -> None:
    if not isinstance(strategy, (DDPStrategy, SingleDeviceStrategy)) or isinstance(strategy, DeepSpeedStrategy):
        raise CheckpointError(
            f"FlashCheckpoint keeps one state that all ranks have, as with DDPStrategy; with {type(strategy).__name__} each rank has"
            " a part: use troupe.checkpoint.fsdp or troupe.checkpoint.deepspeed"
        )
    if isinstance(strategy, DDPStrategy) and not strategy.cluster_environment.creates_processes_externally:
        raise CheckpointError("Lightning has started the ranks itself: start them with actor-launcher --nproc-per-node")
