"""Saves and loads of a DeepSpeed engine, in its own calls or by a checkpointer of DLRover's name."""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deepspeed import __version__ as version
from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import TorchCheckpointEngine

from ..copies import Redundancy
from ..kept_skeleton import Skeletons
from ..library import CheckpointError
from ..loads import FoundFiles
from ..ranks import Rank, number, tell_backend
from ..retention import DeletionStrategy, StorageType
from .engine import Held, MemoryCheckpointEngine, Saving, step_of
from .steps import Steps, needed

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

log = logging.getLogger("troupe.checkpoint")

KNOWN = "0.16.5 to 0.19.8"
CALLS = ("save_checkpoint", "load_checkpoint", "_get_all_ckpt_names", "_copy_recovery_script")
PARTS = (*CALLS, "_get_ckpt_name", "checkpoint_engine", "_config")


class DeepSpeedCheckpointer:
    """Steps of an engine in `<checkpoint_dir>/<tag>/`, in DeepSpeed's own files. The arguments before the star are those of
    DLRover's; with the others see DdpCheckpointer.

    As long as it is open, `engine.save_checkpoint` and `engine.load_checkpoint` with `checkpoint_dir` go through memory too: a
    save of the engine's own goes to the disk if its step is a multiple of `disk_interval`. A tag that ends in a number is the
    step of this number; a save with any other tag, or to another directory, is DeepSpeed's alone, as before. So is a load of a
    directory that Troupe has not written to. `tag_prefix`: what stands before the number in the tags of this job.

    Every call is collective. Raises CheckpointError for an engine whose checkpoints cannot go through memory, with the reason.
    """

    def __init__(
        self,
        engine: Any,
        checkpoint_dir: str | os.PathLike,
        comm_backend: str = "",
        deletion_strategy: DeletionStrategy | None = None,
        save_timeout: float = 600,
        replica_count: int = 0,
        *,
        images: int = 2,
        copy_on_write: bool = False,
        parity: int = 0,
        parity_group: int = 8,
        disk_interval: int = 1,
        tag_prefix: str = "global_step",
    ):
        tell_backend(comm_backend)
        require_known(engine)
        if not isinstance(disk_interval, int) or disk_interval < 1:
            raise ValueError(f"disk_interval is {disk_interval!r}; it is a whole number from 1")
        if step_of(f"{tag_prefix}1") != 1:
            raise ValueError(f"tag_prefix is {tag_prefix!r}; no tag of a step begins like that")
        self.engine = engine
        me = Rank.of_this_process()
        self._steps = Steps(
            checkpoint_dir,
            tag_prefix,
            local_shard_num=max(1, number("LOCAL_WORLD_SIZE", me.world_size)),
            global_shard_num=me.world_size,
            deletion_strategy=deletion_strategy,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
            redundancy=Redundancy.chosen(replica_count, parity, parity_group),
        )
        self._disk_interval = disk_interval
        self._skeletons: defaultdict[str, Skeletons] = defaultdict(Skeletons)
        self._files = MemoryCheckpointEngine(engine.checkpoint_engine, me.rank)
        self._attach()

    def _attach(self) -> None:
        engine = self.engine
        # A wrapper of another's, or nothing.
        self._instead_of = {name: engine.__dict__.get(name) for name in CALLS}
        self._save, self._load = engine.save_checkpoint, engine.load_checkpoint
        self._names, self._copy_scripts = engine._get_all_ckpt_names, engine._copy_recovery_script
        self._scripts_copied: set[str] = set()
        engine.checkpoint_engine = self._files
        engine.save_checkpoint = self._engines_save
        engine.load_checkpoint = self.load_checkpoint
        engine._get_all_ckpt_names = self._all_names
        engine._copy_recovery_script = self._recovery_script_once

    # ---- Saving ----

    def save_checkpoint(
        self,
        save_dir: str | os.PathLike,
        tag: str | int | None = None,
        client_state: dict[str, Any] | None = None,
        save_latest: bool = True,
        storage_type: StorageType = StorageType.DISK,
        **options: Any,
    ) -> bool:
        """Keeps the engine's state of this moment in memory; with DISK it is also written, while training goes on, and
        `latest` then, when all ranks' files are there. `options` are DeepSpeed's.

        Returns False at all ranks, and logs why, if it could not be kept at any. Raises what pickle raises for a `client_state`
        that it cannot write, at the ranks where that happens.
        """
        if not isinstance(storage_type, StorageType):
            raise ValueError(f"storage_type is {storage_type!r}; it is StorageType.MEMORY or DISK")
        tag = f"global_step{self.engine.global_steps}" if tag is None else str(tag)
        step, directory, state = step_of(tag), os.fspath(save_dir), client_state or {}
        if step is None or os.path.abspath(directory) != self._steps.place:
            self._tell_once(directory, tag)
            return self._save(save_dir, tag, state, save_latest, **options)
        saving = Saving(
            os.path.join(directory, tag),
            self._skeletons,
            lambda what: self._steps.keep(step, what, storage_type, save_latest),
        )
        self._files.saving = saving
        try:
            # `latest` is written when the step is complete, which is not now.
            self._save(save_dir, tag, state, False, **options)
        finally:
            self._files.saving = None
        if saving.error:
            raise saving.error
        return saving.kept

    def _engines_save(
        self,
        save_dir: str | os.PathLike,
        tag: str | int | None = None,
        client_state: dict[str, Any] | None = None,
        save_latest: bool = True,
        *more: Any,
        **options: Any,
    ) -> bool:
        """In DeepSpeed's form, whose further arguments differ from version to version."""
        names = list(inspect.signature(self._save).parameters)[4:]
        options |= dict(zip(names, more, strict=False))
        step = step_of(str(tag)) if tag is not None else self.engine.global_steps
        disk = (step or 0) % self._disk_interval == 0
        where = StorageType.DISK if disk else StorageType.MEMORY
        return self.save_checkpoint(save_dir, tag, client_state, save_latest, where, **options)

    def _tell_once(self, directory: str, tag: str) -> None:
        key = f"{directory}\0{tag.rstrip('0123456789')}"
        if key not in self._scripts_copied and self._steps.me.rank == 0:
            self._scripts_copied.add(key)
            log.info(
                "%s/%s is written by DeepSpeed itself: steps of this job are in %s, and their tags end in "
                "a number",
                directory, tag, self._steps.place,
            )  # fmt: skip

    def _recovery_script_once(self, save_path: str) -> None:
        """DeepSpeed copies zero_to_fp32.py at each save; for a save into memory that would be all that touches the disk."""
        if save_path not in self._scripts_copied:
            self._copy_scripts(save_path)
            self._scripts_copied.add(save_path)

    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        """Waits until the last step that was saved to disk is complete, see Checkpointer."""
        return self._steps.wait_latest_checkpoint(timeout)

    def wait_latest_copies(self, timeout: float = 60) -> int | None:
        """Waits until the last copies at other nodes are there, see Checkpointer."""
        return self._steps.wait_latest_copies(timeout)

    # ---- Loading ----

    def load_checkpoint(
        self,
        load_dir: str | os.PathLike,
        tag: str | int | None = None,
        *arguments: Any,
        **options: Any,
    ) -> tuple[str | None, Any]:
        """As DeepSpeed's, with its further arguments: the newest state, from memory, from a peer's memory, or from the disk.

        `tag`: what the job begins with, instead of the disk's newest step; workers that are started again have something newer in
        memory, which is taken. After the first load or save it is just a step on the disk. Another directory, and steps that
        Troupe has not written, DeepSpeed loads itself. A step of ZeRO that a world of another size has saved is converted first, by
        DeepSpeed's own converter and by all ranks together: see universal.py.
        """
        found = self._newest(os.fspath(load_dir), tag)
        if not found:
            if tag is not None:
                self._steps.begins_with(os.path.join(os.path.abspath(load_dir), str(tag)))
            return self._load(load_dir, tag, *arguments, **options)
        saved_here = found.world_size == self._steps.me.world_size
        if saved_here or not (found.directory or self.engine.zero_optimization()):
            held = self._steps.shared(found, self._needs)
            with self._loading(held, universal=False):
                of_step = os.path.basename(held.directory)
                path, state = self._load(self._steps.place, of_step, *arguments, **options)
            return (None if path is None else str(path)), state
        of_step = self._steps.found_file(found.step)[0]
        if not self.engine.zero_optimization():  # a file for whatever world
            return self._load(self._steps.place, of_step, *arguments, **options)
        return self._load_converted(found, of_step, *arguments, **options)

    def _load_converted(
        self, found: FoundFiles, tag: str, *arguments: Any, **options: Any
    ) -> tuple[str | None, Any]:
        began = time.monotonic()
        with self._steps.converted(found, tag) as directory, self._loading(None, universal=True):
            path, state = self._load(directory, tag, *arguments, **options)
        if self._steps.me.rank == 0:
            log.info(
                "step %d, which %d ranks have saved, was converted and loaded by %d in %.1f s",
                found.step, found.world_size, self._steps.me.world_size, time.monotonic() - began,
            )  # fmt: skip
        if path is not None:
            path = os.path.join(self._steps.place, tag, os.path.basename(path))
        return path, state

    def _newest(self, directory: str, tag: str | int | None) -> FoundFiles | None:
        steps = self._steps
        if os.path.abspath(directory) != steps.place or (tag is not None and not steps.fresh):
            return None
        return steps.load_files(disk=tag is None and not steps.latest_is_of_deepspeed())

    def _needs(self, names: list[str]) -> set[str]:
        engine = self.engine
        pattern = os.path.basename(engine._get_ckpt_name("", "", mp_placeholder="*"))
        rank = getattr(engine, "checkpoint_mp_rank", None)
        if rank is None:
            rank = engine.mpu.get_model_parallel_rank() if engine.mpu else 0
        share = rank, engine.mp_world_size
        elastic = engine.zero_optimization() and engine.zero_elastic_checkpoint()
        return needed(names, pattern, share, bool(engine.has_moe_layers), bool(elastic))

    @contextlib.contextmanager
    def _loading(self, held: Held | None, universal: bool) -> Iterator[None]:
        """What DeepSpeed loads meanwhile is in memory, or `universal`, whatever its config says."""
        config = self.engine._config
        asked = getattr(config, "load_universal_checkpoint", False)
        self._files.held, config.load_universal_checkpoint = held, universal
        try:
            yield
        finally:
            self._files.held, config.load_universal_checkpoint = None, asked

    def _all_names(self, checkpoints_path: str, tag: str) -> list[Any]:
        held = self._files.held
        if held is None:
            return self._names(checkpoints_path, tag)
        pattern = os.path.basename(self.engine._get_ckpt_name("", "", mp_placeholder="*"))
        return [held.path(name) for name in sorted(fnmatch.filter(held.names, pattern))]

    def close(self) -> None:
        """The engine is as it was. Not collective; see Checkpointer."""
        if self._files.plain is not None and self.engine.checkpoint_engine is self._files:
            self.engine.checkpoint_engine = self._files.plain
            for name, own in self._instead_of.items():
                if own is None:
                    self.engine.__dict__.pop(name, None)
                else:
                    setattr(self.engine, name, own)
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_known(engine: Any) -> None:
    """Raises CheckpointError for an engine whose checkpoints cannot go through memory, with what to do."""
    if missing := [name for name in PARTS if not hasattr(engine, name)]:
        raise CheckpointError(
            f"this DeepSpeed is {version}, and its {type(engine).__name__} has no {missing[0]}: "
            f"known are {KNOWN}"
        )
    writer = engine.checkpoint_engine
    if isinstance(writer, MemoryCheckpointEngine):
        raise CheckpointError(
            "this engine has a DeepSpeedCheckpointer already: close it before another is made"
        )
    if type(writer) is not TorchCheckpointEngine:
        raise CheckpointError(
            f"the engine writes checkpoints with {type(writer).__name__}, which its config asks for: "
            "take `writer`, `datastates_ckpt` or `nebula` out of the config"
        )
    if getattr(engine._config, "use_node_local_storage", False):
        raise CheckpointError(
            "use_node_local_storage has a file of one name written at each node: take it out of the "
            "config's `checkpoint`"
        )
    if any(one.__name__ == "PipelineEngine" for one in type(engine).__mro__):
        raise CheckpointError(
            "an engine of PipelineModule lists a step's files on the disk itself: "
            "use engine.save_checkpoint"
        )
    if engine.zero_optimization() and engine.zero_nvme_offload_optimizer():
        raise CheckpointError(
            "optimizer states that are offloaded to NVMe are copied there by DeepSpeed: "
            "use engine.save_checkpoint"
        )
