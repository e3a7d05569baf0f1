"""What a Trainer's saves and resumptions become, of which `trainer` is the thin shell."""

from __future__ import annotations

import contextlib
import logging
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import transformers

from ..copies import Redundancy
from ..directories.capture import Capture
from ..directories.checkpointer import PREFIX, DirectoryCheckpointer, StepDirectories
from ..directories.fsdp import FsdpDirectoryCheckpointer
from ..directories.sharded import ZeroDirectoryCheckpointer
from ..directories.readable import require_readable
from ..directories.steps import LAST_FILE, remove_complete, step_of
from ..library import CheckpointError
from ..retention import StorageType

log = logging.getLogger("troupe.checkpoint")

UNIVERSAL = "load_universal"  # in DeepSpeed's config, among what it says of checkpoints


@dataclass(frozen=True)
class Options:
    """`memory_steps`: a save to memory alone after every so many steps; 0: only what Trainer's arguments say is saved.
    `wait_for_callbacks`: where a callback has an `on_save`, or checkpoints are pushed to the Hub, training waits until a step that is
    saved to the disk is complete; False: `on_save` is called at once, and nothing is pushed before the end.
    The rest as for `DdpCheckpointer`."""

    memory_steps: int = 0
    wait_for_callbacks: bool = True
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
        require_possible(trainer, options)
        self.trainer = trainer
        self.options = options
        self.checkpointer: StepDirectories | None = None
        self._capture: Capture | None = None
        self._memory_only = False  # the save that comes
        self._first_step_is_over = False
        self._until_release = contextlib.ExitStack()
        self._pushed = False  # Trainer would push the checkpoint that is being saved

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

    def save(self, write: Callable[[], Any], push: Callable[[str], Any]) -> None:
        """`write`: Trainer's own save. `push`: its push of a checkpoint's directory to the Hub."""
        trainer = self.trainer
        storage = StorageType.MEMORY if self._memory_only else StorageType.DISK
        self._memory_only = self._pushed = False
        vars(trainer.callback_handler).pop("on_save", None)
        with self._as_without_us() if storage is StorageType.MEMORY else contextlib.nullcontext():
            kept = self._kept(write, storage)
        step = trainer.state.global_step
        if not kept:
            log.error("step %d is not kept, and training goes on without it", step)
        if storage is StorageType.MEMORY:
            return self._without_on_save()
        complete = kept and (not self._is_awaited() or self.settle())
        if not complete:
            self._without_on_save()  # there is no checkpoint to look at
        elif self._pushed:
            push(os.path.join(self._place(), f"{PREFIX}{step}"))
        self._make_room(last=self._is_last_save())

    def _kept(self, write: Callable[[], Any], storage: StorageType) -> bool:
        checkpointer, step = self.open(), self.trainer.state.global_step
        name = f"{PREFIX}{step}"
        self._capture = capture = Capture()
        try:
            (capture.root / name).mkdir()
            with self._written_here(checkpointer.replicated and checkpointer.saves), checkpointer.noting(capture):
                write()
            self._with_real_paths(capture, name)
            files = capture.files(name)
            checkpointer.others.make_way(step)
            kept = checkpointer.save_directory(step, files, storage)
            if not kept and storage is StorageType.DISK:
                # It may be that all memory holds what is still being written.
                checkpointer.wait_latest_checkpoint(self.options.save_timeout)
                kept = checkpointer.save_directory(step, files, storage)
            return kept
        finally:
            self._capture = None
            capture.close()

    # ---- What callbacks see ----

    def pushes_later(self) -> bool:
        """Whether a push is of the checkpoint that is being saved: it is made when that is complete."""
        self._pushed = self._capture is not None
        return self._pushed

    def _is_awaited(self) -> bool:
        """Whether any rank has something that looks at a checkpoint once it is saved. Collective."""
        mine = bool(self.options.wait_for_callbacks and (self._pushed or self._listeners()))
        return self.open().any_rank(mine)

    def _listeners(self) -> list[str]:
        """Callbacks that hear of saves."""
        plain = transformers.TrainerCallback.on_save
        callbacks = self.trainer.callback_handler.callbacks
        return [type(one).__name__ for one in callbacks if getattr(one.on_save, "__func__", None) is not plain]

    def _without_on_save(self) -> None:
        """Trainer's next call of that is for a checkpoint that Trainer itself would not have, or that is not there."""
        handler = self.trainer.callback_handler

        def on_save(args: Any, state: Any, control: Any) -> Any:
            vars(handler).pop("on_save", None)
            control.should_save = False
            return control

        handler.on_save = on_save

    @contextlib.contextmanager
    def _as_without_us(self) -> Iterator[None]:
        """What a save leaves in Trainer's state, and writes into later checkpoints, is none of a save to memory alone."""
        state = self.trainer.state
        before = {name: list(kept) if isinstance(kept, list) else kept for name, kept in state.stateful_callbacks.items()}
        best = state.best_model_checkpoint
        try:
            yield
        finally:
            state.stateful_callbacks, state.best_model_checkpoint = before, best

    # ---- Files ----

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
            for step in remove_complete(checkpointer.place, limit, best, checkpointer.run.others):
                log.info("step %d is removed, since save_total_limit is %d", step, limit)
        except (CheckpointError, OSError) as error:
            log.warning("checkpoints beyond save_total_limit stay: %s", error)

    def settle(self) -> bool:
        """Until the last save to disk is complete; whether it is."""
        if not self.checkpointer:
            return True
        complete = self.checkpointer.wait_latest_checkpoint(self.options.save_timeout)
        self._remove_old()
        return complete

    # ---- Resuming ----

    def resumed_from(self, resume: bool | str | os.PathLike | None) -> str | None:
        """What Trainer is to resume from. True: the newest step, from memory or else the disk, and the beginning if there is none. A
        path: that, but for workers that were started again: they have something newer in memory. None or False: nothing.

        Raises CheckpointError, with the file's name, for a path that cannot be read.
        """
        self._first_step_is_over = False
        checkpointer = self.open()
        if resume is not True:
            checkpointer.note_others()
        if not resume:
            return None
        if found := checkpointer.load_newest(LAST_FILE) if resume is True else checkpointer.load_directory(disk=False):
            step, directory = found
            log.info("training is resumed from step %d", step)
            if isinstance(checkpointer, ZeroDirectoryCheckpointer) and checkpointer.is_universal:
                self._load_universal()
            return directory
        if resume is True:
            if checkpointer.me.rank == 0:
                log.warning("there is no checkpoint at %s: training begins", checkpointer.place)
            return None
        path = os.fspath(resume)
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
        # A sweep makes one Trainer after the other, and closes none.
        weakref.finalize(self.trainer, self.checkpointer.close).atexit = False
        return self.checkpointer

    def _place(self) -> str:
        return os.path.abspath(self.trainer.args.output_dir)

    def close(self) -> None:
        if self.checkpointer:
            self.checkpointer.close()
        self.checkpointer = None


def require_possible(trainer: Any, options: Options) -> None:
    pushes = trainer.args.push_to_hub and getattr(trainer.args.hub_strategy, "value", "") != "end"
    if pushes and not options.wait_for_callbacks:
        raise ValueError(
            "with wait_for_callbacks=False no checkpoint is pushed to the Hub, as it is written later: leave it out, or set "
            "hub_strategy='end' or push_to_hub=False"
        )
