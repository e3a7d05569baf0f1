"""Accelerate's states in the time of one memory copy.

    states = troupe.checkpoint.accelerate.States(accelerator, "runs/1")
    begun_with = states.load()       # None: there is nothing yet
    states.save(step)                # accelerator.save_state, into memory and then to runs/1/checkpoint-<step>/
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .copies import Redundancy
from .directories.capture import Capture
from .directories.checkpointer import PREFIX, DirectoryCheckpointer, StepDirectories
from .directories.fsdp import FsdpDirectoryCheckpointer
from .retention import StorageType

LAST_FILE = "random_states_0.pkl"  # of save_state, by the first rank


class States:
    """What `accelerator.save_state` writes, under its names; `accelerator.load_state` reads it without us. Every method is to be
    called by all ranks, in the same order."""

    def __init__(
        self,
        accelerator: Any,
        checkpoint_dir: str | os.PathLike,
        *,
        save_timeout: float = 600,
        images: int = 2,
        copy_on_write: bool = False,
        replica_count: int = 0,
        parity: int = 0,
        parity_group: int = 8,
    ):
        """Options as for DdpCheckpointer; the last three count with FSDP, where each rank has a part. Raises ValueError for an accelerator
        whose states are in parts of other kinds (DeepSpeed, Megatron-LM), or that names directories by itself."""
        kind = str(getattr(accelerator.distributed_type, "value", accelerator.distributed_type))
        if kind in ("DEEPSPEED", "MEGATRON_LM"):
            raise ValueError(f"with {kind} each rank has a part of the state: use the module for it in troupe.checkpoint")
        if accelerator.project_configuration.automatic_checkpoint_naming:
            raise ValueError(
                "automatic_checkpoint_naming writes to directories of its own: leave it out, steps are named by `save`"
            )
        self.accelerator = accelerator
        made: type[StepDirectories] = FsdpDirectoryCheckpointer if kind == "FSDP" else DirectoryCheckpointer
        self.checkpointer = made(
            checkpoint_dir,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
            redundancy=Redundancy.chosen(replica_count, parity, parity_group),
        )

    def save(self, step: int, storage_type: StorageType = StorageType.DISK, **named: Any) -> bool:
        """Whether it is kept, as `Checkpointer.save_checkpoint` says. `named`: for `accelerator.save_state`."""
        capture, name = Capture(), f"{PREFIX}{step}"
        try:
            with self._written_here(), self.checkpointer.noting(capture):
                self.accelerator.save_state(str(capture.root / name), **named)
            self.checkpointer.others.make_way(step)
            return self.checkpointer.save_directory(step, capture.files(name), storage_type)
        finally:
            capture.close()

    @contextlib.contextmanager
    def _written_here(self) -> Iterator[None]:
        """Accelerate writes what rank 0 has at each rank that keeps it."""
        project = self.accelerator.project_configuration
        was = project.save_on_each_node
        try:
            project.save_on_each_node = was or (self.checkpointer.replicated and self.checkpointer.saves)
            yield
        finally:
            project.save_on_each_node = was

    def load(self, **named: Any) -> int | None:
        """The newest step, which everything that was prepared or registered has then; None: there is none. One that `save_state` itself has
        written to `checkpoint-<step>` counts as well. `named`: for `accelerator.load_state`."""
        if not (found := self.checkpointer.load_newest(LAST_FILE)):
            return None
        step, directory = found
        try:
            with self.checkpointer.reading():
                self.accelerator.load_state(directory, **named)
            self.accelerator.wait_for_everyone()  # before any rank's part of the directory goes
        finally:
            self.checkpointer.release()
        return step

    def wait(self, timeout: float = 1800) -> bool:
        """Whether the last save to disk is complete."""
        return self.checkpointer.wait_latest_checkpoint(timeout)

    def close(self) -> None:
        self.checkpointer.close()
