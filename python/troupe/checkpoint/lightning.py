"""Lightning's checkpoints in the time of one memory copy.

    trainer = Trainer(callbacks=[FlashCheckpoint("ckpt", memory_steps=1, disk_steps=100)])
    trainer.fit(model)               # goes on from the newest step, which may be in memory only
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .changes import shadowed
from .contents import list_name
from .copies import Redundancy
from .ddp import DdpCheckpointer
from .directories.capture import Capture
from .directories.fsdp import FsdpDirectoryCheckpointer
from .library import CheckpointError
from .retention import DeletionStrategy, StorageType

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:  # the same under its older name
    from pytorch_lightning.callbacks import Checkpoint
    from pytorch_lightning.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy, SingleDeviceStrategy
else:
    from lightning.pytorch.callbacks import Checkpoint
    from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy, SingleDeviceStrategy

log = logging.getLogger("troupe.checkpoint")

OF_PARTS = (FSDPStrategy, ModelParallelStrategy)


class FlashCheckpoint(Checkpoint):
    """In the place of ModelCheckpoint, or beside one that keeps the best: saves after steps of the optimizer, and has `fit` go on from
    the newest save.

    `memory_steps`: into memory, after every so many steps; `disk_steps`: to `<dirpath>/step=<step>.ckpt` as well, which Lightning
    reads as its own, and once more at the end of `fit`. 0: not. The other options as for DdpCheckpointer; the last three count with
    FSDPStrategy and ModelParallelStrategy, where each rank has a part. Raises ValueError for wrong arguments.

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
        replica_count: int = 0,
        parity: int = 0,
        parity_group: int = 8,
    ):
        for name, steps in (("memory_steps", memory_steps), ("disk_steps", disk_steps)):
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
                raise ValueError(f"{name} is {steps!r}; it is a whole number of steps, 0 for none")
        self.memory_steps = memory_steps
        self.disk_steps = disk_steps
        self._place = os.path.abspath(dirpath)
        self._options: dict[str, Any] = {
            "deletion_strategy": deletion_strategy,
            "save_timeout": save_timeout,
            "images": images,
            "copy_on_write": copy_on_write,
        }
        self._redundancy = Redundancy.chosen(replica_count, parity, parity_group)
        self._save_timeout = save_timeout
        self._states: _WholeStates | _PartsOfStates | None = None
        self._newest = 0  # step that was saved or begun with
        self._newest_on_disk = 0

    # ---- Lightning's hooks, each called by all ranks ----

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raises CheckpointError for a strategy whose states cannot be kept."""
        if stage != "fit" or trainer.fast_dev_run:
            return
        _require_known(trainer.strategy)
        if isinstance(trainer.strategy, OF_PARTS):
            self._states = _PartsOfStates(trainer, self._place, redundancy=self._redundancy, **self._options)
        else:
            self._states = _WholeStates(trainer, self._place, **self._options)
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
        if self._states:
            self._states.checkpointer.close()
        self._states = None

    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        """Whether the last save to disk is complete; False after `timeout` seconds. Collective."""
        return not self._states or self._states.checkpointer.wait_latest_checkpoint(timeout)

    # ---- Saving and resuming ----

    def _save(self, trainer: Any, storage: StorageType) -> None:
        if not self._states:
            return
        step = trainer.global_step
        self._newest = step
        with self._states.taken(step) as save:
            kept = save(storage)
            if not kept and storage is StorageType.DISK:
                # It may be that all memory holds what is still being written.
                self.wait_latest_checkpoint(self._save_timeout)
                kept = save(storage)
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
        assert self._states
        path = os.fspath(checkpoint_path) if checkpoint_path else ""
        resume = functools.partial(native, trainer._checkpoint_connector)
        self._newest = self._newest_on_disk = self._states.resume(resume, path, weights_only)


class _WholeStates:
    """The state is the same at all ranks, and local rank 0 of each node keeps it: a file of torch.save."""

    def __init__(self, trainer: Any, place: str, **options: Any):
        self._trainer = trainer
        self.checkpointer = DdpCheckpointer(place, **options)

    @contextlib.contextmanager
    def taken(self, step: int) -> Iterator[Callable[[StorageType], bool]]:
        """Saves of the state of this moment."""
        state = self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        path = os.path.join(self.checkpointer.place, _name_of(step))
        yield functools.partial(self.checkpointer.save_checkpoint, step, state, path)

    def resume(self, native: Callable[[str | None], None], path: str, weights_only: bool | None) -> int:
        """The step that `native` has put in its place. `path`: that the job begins with, or nothing."""
        state = self.checkpointer.load_checkpoint(path, weights_only=weights_only is not False)
        if not state:
            native(None)
            return 0
        if not isinstance(state, dict) or "pytorch-lightning_version" not in state:
            raise CheckpointError(f"{path or self.checkpointer.place} has a state that Lightning has not made")
        step = int(state["global_step"])
        with shadowed(self._trainer.strategy, load_checkpoint=lambda *_, **__: state):
            native(path or f"step {step} of {self.checkpointer.place}")
        return step


class _StepDirectories(FsdpDirectoryCheckpointer):
    def default_file(self, step: int) -> tuple[str, str]:
        return _name_of(step), list_name(self.shard or 0)


class _PartsOfStates:
    """Each rank has a part of the state, and keeps it. The strategy writes a directory by torch.distributed.checkpoint."""

    def __init__(self, trainer: Any, place: str, **options: Any):
        self._trainer = trainer
        self.checkpointer = _StepDirectories(place, **options)

    @contextlib.contextmanager
    def taken(self, step: int) -> Iterator[Callable[[StorageType], bool]]:
        capture, name = Capture(), _name_of(step)
        try:
            state = self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
            with self.checkpointer.noting(capture), self._paths_of_this_rank():
                self._trainer.strategy.save_checkpoint(state, capture.root / name)
            yield functools.partial(self.checkpointer.save_directory, step, capture.files(name))
        finally:
            capture.close()

    def resume(self, native: Callable[[str | None], None], path: str, weights_only: bool | None) -> int:
        found = self.checkpointer.load_directory(disk=not path)
        if not found:
            if path:
                self.checkpointer.begins_with(os.path.abspath(path))
            native(path or None)
            return 0
        step, directory = found
        try:
            with self.checkpointer.reading(), self._paths_of_this_rank():
                native(directory)
            self._trainer.strategy.barrier()  # before any rank's part of the directory goes
        finally:
            self.checkpointer.release()
        return step

    def _paths_of_this_rank(self) -> contextlib.AbstractContextManager[None]:
        """The strategy sends rank 0's path to all ranks, and each rank has one of its own."""
        return shadowed(self._trainer.strategy, broadcast=lambda path, src=0: path)


def _name_of(step: int) -> str:
    return f"step={step}.ckpt"


def _require_known(strategy: Any) -> None:
    if isinstance(strategy, DeepSpeedStrategy) or not isinstance(strategy, (DDPStrategy, SingleDeviceStrategy, *OF_PARTS)):
        raise CheckpointError(
            f"FlashCheckpoint does not know the states of {type(strategy).__name__}: use DDPStrategy, FSDPStrategy or "
            "ModelParallelStrategy, or troupe.checkpoint.deepspeed in a loop of your own"
        )
    if isinstance(strategy, ModelParallelStrategy) and not strategy._save_distributed_checkpoint:
        raise CheckpointError("save_distributed_checkpoint=False puts the whole state together at rank 0: leave it out")
    if isinstance(strategy, FSDPStrategy) and strategy._state_dict_type != "sharded":
        raise CheckpointError('FSDPStrategy puts the whole state together at rank 0: give it state_dict_type="sharded"')
    if isinstance(strategy, SingleDeviceStrategy) or strategy.cluster_environment.creates_processes_externally:
        return
    raise CheckpointError("Lightning has started the ranks itself: start them with actor-launcher --nproc-per-node")
