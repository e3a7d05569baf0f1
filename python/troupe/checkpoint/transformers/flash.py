"""What a Trainer's saves and resumptions become, of which `trainer` is the thin shell."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..copies import Redundancy
from ..directories.capture import Capture
from ..directories.checkpointer import PREFIX, DirectoryCheckpointer, StepDirectories
from ..directories.fsdp import FsdpDirectoryCheckpointer
from ..directories.sharded import ZeroDirectoryCheckpointer
from ..directories.steps import LAST_FILE, newest_of_others, remove_complete, require_readable, step_of
from ..library import CheckpointError
from ..retention import StorageType

log = logging.getLogger("troupe.checkpoint")

UNIVERSAL = "load_universal"  # in DeepSpeed's config, among what it says of checkpoints


@dataclass(frozen=True)
class Options:
    """`memory_steps`: a save to memory alone after every so many steps; 0: only what Trainer's arguments say is saved.
    The rest as for `DdpCheckpointer`."""

    memory_steps: int = 0
    save_timeout: float = 600
    images: int = 2
    copy_on_write: bool = False
    replica_count: int = 0
    parity: int = 0
    parity_group: int = 8

    def __post_init__(self) -> None:
        steps = self.memory_steps
        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
            raise ValueError(f"memory_steps is {steps!r}; it is a whole number of steps, 0 for none")


class Flash:
    """Of one Trainer. All ranks call each method but `directory_of_run`, `step_ended` and `release`."""

    def __init__(self, trainer: Any, options: Options):
        """Raises ValueError for a Trainer whose checkpoints cannot be kept this way."""
        require_possible(trainer)
        self.trainer = trainer
        self.options = options
        self.checkpointer: StepDirectories | None = None
        self._capture: Capture | None = None
        self._memory_only = False  # the save that comes
        self._first_step_is_over = False
        self._until_release = contextlib.ExitStack()

    # ---- What Trainer asks ----

    @property
    def directory_of_run(self) -> str | None:
        """Where checkpoints are written, while one is saved."""
        return str(self._capture.root) if self._capture else None

    def step_ended(self, args: Any, state: Any, control: Any) -> None:
        if not self._first_step_is_over and not args.auto_find_batch_size:  # which may begin once more
            # All ranks have their weights, or this step could not have been made.
            self._first_step_is_over = True
            self.release()
        every = self.options.memory_steps
        decided_later = control.should_evaluate and getattr(args.save_strategy, "value", "") == "best"
        if every and state.global_step % every == 0 and not control.should_save and not decided_later:
            control.should_save = self._memory_only = True

    # ---- Saving ----

    def save(self, write: Callable[[], Any]) -> None:
        """`write`: Trainer's own save."""
        checkpointer, trainer = self.open(), self.trainer
        storage = StorageType.MEMORY if self._memory_only else StorageType.DISK
        self._memory_only = False
        step = trainer.state.global_step
        name = f"{PREFIX}{step}"
        self._capture = capture = Capture()
        try:
            (capture.root / name).mkdir()
            with self._written_here(checkpointer.replicated and checkpointer.saves), checkpointer.noting(capture):
                write()
            self._with_real_paths(capture, name)
            files = capture.files(name)
            kept = checkpointer.save_directory(step, files, storage)
            if not kept and storage is StorageType.DISK:
                # It may be that all memory holds what is still being written.
                checkpointer.wait_latest_checkpoint(self.options.save_timeout)
                kept = checkpointer.save_directory(step, files, storage)
        finally:
            self._capture = None
            capture.close()
        if not kept:
            log.error("step %d is not kept, and training goes on without it", step)
        if storage is StorageType.DISK:
            self._make_room(last=self._is_last_save())

    @contextlib.contextmanager
    def _written_here(self, saves: bool) -> Iterator[None]:
        """Trainer writes what rank 0 has at each rank that keeps it."""
        arguments = vars(self.trainer.args)
        was = arguments.get("save_on_each_node")
        try:
            if saves and self.trainer.args.process_index != 0:
                arguments["save_on_each_node"] = True
            yield
        finally:
            arguments["save_on_each_node"] = was

    def _with_real_paths(self, capture: Capture, name: str) -> None:
        state = self.trainer.state
        best = state.best_model_checkpoint
        if not best or not os.path.realpath(best).startswith(f"{capture.root}{os.sep}"):
            return
        place = self._place()
        state.best_model_checkpoint = os.path.join(place, os.path.relpath(os.path.realpath(best), capture.root))
        written = capture.root / name / LAST_FILE
        if written.exists():
            state.save_to_json(str(written))

    def _is_last_save(self) -> bool:
        trainer = self.trainer
        return trainer.control.should_training_stop or trainer.state.global_step >= trainer.state.max_steps

    def _make_room(self, last: bool) -> None:
        """`last`: nothing is written any more when this returns, as Trainer itself removes directories at the end."""
        if self.checkpointer and last:
            self.settle()
        elif self.checkpointer:
            self._remove_old()

    def _remove_old(self) -> None:
        """What `save_total_limit` leaves too many, where the writer does not do that itself."""
        limit = self.trainer.args.save_total_limit
        checkpointer = self.checkpointer
        if not checkpointer or checkpointer.shard != 0 or not limit or limit <= 0:
            return
        try:
            best = step_of(self.trainer.state.best_model_checkpoint)
            for step in remove_complete(checkpointer.place, limit, best):
                log.info("step %d is removed, since save_total_limit is %d", step, limit)
        except (CheckpointError, OSError) as error:
            log.warning("checkpoints beyond save_total_limit stay: %s", error)

    def settle(self) -> None:
        """Until the last save to disk is complete."""
        if self.checkpointer:
            self.checkpointer.wait_latest_checkpoint(self.options.save_timeout)
            self._remove_old()

    # ---- Resuming ----

    def resumed_from(self, resume: bool | str | os.PathLike | None) -> str | None:
        """What Trainer is to resume from. True: the newest step, from memory or else the disk, and the beginning if there is none. A
        path: that, but for workers that were started again: they have something newer in memory. None or False: nothing.

        Raises CheckpointError, with the file's name, for a path that cannot be read.
        """
        self._first_step_is_over = False
        checkpointer = self.open()
        if not resume:
            return None
        if found := checkpointer.load_directory(disk=resume is True):
            step, directory = found
            log.info("training is resumed from step %d", step)
            if isinstance(checkpointer, ZeroDirectoryCheckpointer) and checkpointer.is_universal:
                self._load_universal()
            return directory
        path = newest_of_others(checkpointer.place) if resume is True else os.fspath(resume)
        if path is None:
            if checkpointer.me.rank == 0:
                log.warning("there is no checkpoint at %s: training begins", checkpointer.place)
            return None
        require_readable(path)
        checkpointer.begins_with(os.path.abspath(path))
        return path

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While Trainer reads what it resumes from."""
        with self.checkpointer.reading() if self.checkpointer else contextlib.nullcontext():
            yield

    def _load_universal(self) -> None:
        """What DeepSpeed loads until `release` is a universal checkpoint, whatever its config says."""
        config = self.trainer.accelerator.state.deepspeed_plugin.hf_ds_config.config.setdefault("checkpoint", {})
        asked, config[UNIVERSAL] = config.get(UNIVERSAL, False), True

        def as_asked() -> None:
            config[UNIVERSAL] = asked
            if engine := getattr(self.trainer, "deepspeed", None):
                engine._config.load_universal_checkpoint = asked

        self._until_release.callback(as_asked)

    def release(self) -> None:
        self._until_release.close()
        if self.checkpointer:
            self.checkpointer.release()

    # ---- The checkpointer ----

    def open(self) -> StepDirectories:
        place, options = self._place(), self.options
        if self.checkpointer and self.checkpointer.place == place:
            return self.checkpointer
        self.close()
        kind: type[StepDirectories] = DirectoryCheckpointer
        if getattr(self.trainer, "is_deepspeed_enabled", False):
            kind = ZeroDirectoryCheckpointer
        elif getattr(self.trainer, "is_fsdp_enabled", False):
            kind = FsdpDirectoryCheckpointer
        self.checkpointer = kind(
            place,
            save_timeout=options.save_timeout,
            images=options.images,
            copy_on_write=options.copy_on_write,
            redundancy=Redundancy.chosen(options.replica_count, options.parity, options.parity_group),
        )
        return self.checkpointer

    def _place(self) -> str:
        return os.path.abspath(self.trainer.args.output_dir)

    def close(self) -> None:
        if self.checkpointer:
            self.checkpointer.close()
        self.checkpointer = None


def require_possible(trainer: Any) -> None:
    if trainer.args.push_to_hub and getattr(trainer.args.hub_strategy, "value", "") != "end":
        raise ValueError(
            "Trainer's checkpoints cannot be kept in memory: push_to_hub sends a checkpoint's directory when it is saved, and here it "
            "is written later: set hub_strategy='end' or push_to_hub=False"
        )
