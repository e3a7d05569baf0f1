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
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .arena import complete_steps
from .changes import shadowed
from .contents import list_name
from .copies import Redundancy
from .ddp import DdpCheckpointer
from .directories.capture import Capture
from .directories.fsdp import FsdpDirectoryCheckpointer
from .library import CheckpointError
from .lightning_files import file_of, newest_file, others
from .others import Others
from .retention import DeletionStrategy, StorageType

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:  # the same under its older name
    from pytorch_lightning.callbacks import Checkpoint
    from pytorch_lightning.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy, SingleDeviceStrategy
else:
    from lightning.pytorch.callbacks import Checkpoint
    from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy, SingleDeviceStrategy

log = logging.getLogger("troupe.checkpoint")

STEPS_NAMED = 64
OF_PARTS = (FSDPStrategy, ModelParallelStrategy)


class FlashCheckpoint(Checkpoint):
    """In the place of ModelCheckpoint, or beside one that keeps the best: saves after steps of the optimizer, and has `fit` go on from
    the newest save.

    `memory_steps`: into memory, after every so many steps; `disk_steps`: to `<dirpath>/step=<step>.ckpt` as well, which Lightning
    reads as its own, and once more at the end of `fit`. 0: not. The other options as for DdpCheckpointer; the last three count with
    FSDPStrategy and ModelParallelStrategy, where each rank has a part. Raises ValueError for wrong arguments.

    Where `fit` is given a `ckpt_path`, the job begins with that; workers that are started again have something newer in memory, which
    is taken. A Trainer that has fitted before goes on with what it has. Without a `ckpt_path`, a file that Lightning itself has written to `dirpath` is what `fit` goes on from, if it is of a later step.

    Lightning asks the first of the Checkpoint callbacks for paths: a ModelCheckpoint, wherever it stands in the list; else this one,
    which has ModelCheckpoint's names for them. Without a metric the last is the best, as there.
    """

    monitor = best_model_score = current_score = None
    mode, save_last, kth_best_model_path = "min", None, ""

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
        self._named: deque[int] = deque(maxlen=STEPS_NAMED)  # steps that this callback has saved to the disk, or begun with

    # ---- What Lightning and its loggers ask a ModelCheckpoint ----

    @property
    def dirpath(self) -> str:
        return self._place

    @property
    def best_model_path(self) -> str:
        """Of the newest complete step; "": this callback has saved none and begun with none."""
        complete = complete_steps(self._place) if self._named else []
        return next((os.path.join(self._place, file_of(step)) for step in complete if step in self._named), "")

    @property
    def last_model_path(self) -> str:
        return self.best_model_path

    @property
    def best_k_models(self) -> dict[str, Any]:
        return {path: None for path in [self.best_model_path] if path}

    # ---- Lightning's hooks, each called by all ranks ----

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raises CheckpointError for a strategy whose states cannot be kept."""
        # Behind the others: the first is the one that `ckpt_path="best"` asks. The list that Lightning goes through now stays as it is.
        trainer.callbacks = [one for one in trainer.callbacks if one is not self] + [self]
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
        if self.wait_latest_checkpoint(self._save_timeout) and trainer.is_global_zero and self.best_model_path:
            for logger in trainer.loggers:  # those with `log_model` upload it
                logger.after_save_checkpoint(self)

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
            self._named.append(step)

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
        if not path and trainer.global_step > 0:  # this Trainer has fitted before, and goes on with what it has
            resume(None)
            self._newest = trainer.global_step
            return
        self._newest = self._newest_on_disk = self._states.resume(resume, path, weights_only)
        self._named.append(self._newest)


class _States:
    """`checkpointer`: of this fit."""

    def __init__(self, trainer: Any, checkpointer: Any):
        self._trainer = trainer
        self.checkpointer = checkpointer
        self._weights_only: bool | None = None
        self._others = Others(checkpointer, lambda than: newest_file(checkpointer.place, than, self._weights_only))
        self._others.pass_by(others(checkpointer.place))


class _WholeStates(_States):
    """The state is the same at all ranks, and local rank 0 of each node keeps it: a file of torch.save."""

    def __init__(self, trainer: Any, place: str, **options: Any):
        super().__init__(trainer, DdpCheckpointer(place, **options))

    @contextlib.contextmanager
    def taken(self, step: int) -> Iterator[Callable[[StorageType], bool]]:
        """Saves of the state of this moment."""
        state = self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        path = os.path.join(self.checkpointer.place, file_of(step))
        self._others.make_way(step)
        yield functools.partial(self.checkpointer.save_checkpoint, step, state, path)

    def resume(self, native: Callable[[str | None], None], path: str, weights_only: bool | None) -> int:
        """The step that `native` has put in its place. `path`: that the job begins with, or nothing."""
        self._weights_only = weights_only

        def load() -> Any:
            return self._required(self.checkpointer.load_checkpoint(path, weights_only=weights_only is not False), path)

        state, other = (load(), None) if path else self._others.newest_of_all(load, _step_of)
        if not state:
            native(other.path if other else None)
            return other.step if other else 0
        with shadowed(self._trainer.strategy, load_checkpoint=lambda *_, **__: state):
            native(path or f"step {_step_of(state)} of {self.checkpointer.place}")
        return _step_of(state)

    def _required(self, state: Any, path: str) -> Any:
        if state and (not isinstance(state, dict) or "pytorch-lightning_version" not in state):
            raise CheckpointError(f"{path or self.checkpointer.place} has a state that Lightning has not made")
        return state


class _StepDirectories(FsdpDirectoryCheckpointer):
    def default_file(self, step: int) -> tuple[str, str]:
        return file_of(step), list_name(self.shard or 0)


class _PartsOfStates(_States):
    """Each rank has a part of the state, and keeps it. The strategy writes a directory by torch.distributed.checkpoint."""

    def __init__(self, trainer: Any, place: str, **options: Any):
        super().__init__(trainer, _StepDirectories(place, **options))

    @contextlib.contextmanager
    def taken(self, step: int) -> Iterator[Callable[[StorageType], bool]]:
        capture, name = Capture(), file_of(step)
        try:
            state = self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
            with self.checkpointer.noting(capture), self._paths_of_this_rank():
                self._trainer.strategy.save_checkpoint(state, capture.root / name)
            self._others.make_way(step)
            yield functools.partial(self.checkpointer.save_directory, step, capture.files(name))
        finally:
            capture.close()

    def resume(self, native: Callable[[str | None], None], path: str, weights_only: bool | None) -> int:
        self._weights_only = weights_only
        checkpointer, other = self.checkpointer, None
        if path:
            found = checkpointer.load_directory(disk=False)
        else:
            found, other = self._others.newest_of_all(checkpointer.load_directory, lambda found: found[0])
        if not found:
            if path:
                checkpointer.begins_with(os.path.abspath(path))
            native(other.path if other else path or None)
            return other.step if other else 0
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


def _step_of(state: dict[str, Any]) -> int:
    return int(state["global_step"])


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
