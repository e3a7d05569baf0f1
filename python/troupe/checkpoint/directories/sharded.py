"""Checkpoints as directories `checkpoint-<step>` of which each rank has written a part: with DeepSpeed's ZeRO, and with FSDP.

Without this a Trainer with a sharded state would have to gather it at one rank to keep it in memory, which is what sharding is there
to avoid. So each rank keeps its own files: its part of the weights or the optimizer, and what only one rank writes (Trainer's state).
"""

from __future__ import annotations

import os
import shutil
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..contents import File, Files, list_name
from ..exchange import exchanged
from ..loads import FoundFiles
from ..ranks import Rank, number
from ..retention import StorageType
from .checkpointer import PREFIX, StepDirectories
from .directory import Directory

PARTITION = "optim_states.pt"  # how the names of DeepSpeed's files end that one rank reads
TAG = "global_step"  # how Trainer has DeepSpeed name its own directory in a checkpoint's, with the step behind it
LATEST_UNIVERSAL = "latest_universal"  # where DeepSpeed reads which one is universal
EXPERTS = "expp_rank_"  # how those of a partition begin that ranks of other worlds of experts read


class ShardedDirectoryCheckpointer(StepDirectories):
    """Each rank is a shard of `<checkpoint_dir>/checkpoint-<step>/`, with the files that it gives."""

    replicated = False
    saves = True  # every rank has large files of its own

    def __init__(self, checkpoint_dir: str | os.PathLike, **options: Any):
        """`options`: as for StepDirectories, but for the numbers of shards."""
        world_size = Rank.of_this_process().world_size
        self._read: tuple[FoundFiles, str, list[str]] | None = None  # of `load_directory`: its directory, and the names of all files
        super().__init__(
            checkpoint_dir,
            local_shard_num=number("LOCAL_WORLD_SIZE", world_size),
            global_shard_num=world_size,
            **options,
        )

    def default_file(self, step: int) -> tuple[str, str]:
        return f"{PREFIX}{step}", list_name(self.shard or 0)

    # ---- A framework's part ----

    @abstractmethod
    def lies_in_directory(self, name: str, of_node: bool) -> bool:
        """Whether a file is there for ranks of this node to open; else they see its name alone. `of_node`: a rank of the node has it."""

    # ---- Saving ----

    def save_directory(
        self, step: int, files: Sequence[File], storage_type: StorageType = StorageType.DISK
    ) -> bool:
        """As `save_files`. Collective. A file that several ranks have written (Trainer's `save_on_each_node`) is the lowest one's."""
        rows = self._ranks.blobs("\0".join(file.name for file in files).encode(errors="surrogateescape"))
        before = {name for row in rows[: self.me.rank] for name in row.decode(errors="surrogateescape").split("\0")}
        mine = [file for file in files if file.name not in before]
        return self.save_files(step, Files(mine), storage_type)

    # ---- Loading ----

    def load_directory(self, disk: bool = True) -> tuple[int, str] | None:
        """Of a step that a world of another size has written to the disk it is the step's own directory. Raises CheckpointError as `load_files`
        does."""
        self.release()
        found = self.load_files(disk=disk)
        if not found:
            return None
        directory, names = self._opened(found)
        self._read = found, directory, names
        return found.step, directory

    def _opened(self, found: FoundFiles) -> tuple[str, list[str]]:
        """A directory with the step's files for the framework, and the names of those that are in ranks' memory."""
        return (found.directory, []) if found.directory else self._laid_out(found)

    def _laid_out(self, found: FoundFiles) -> tuple[str, list[str]]:
        """Each rank adds its files to its node's directory, which local rank 0 makes. And the names of all ranks' files."""
        first = self.me.local_rank == 0
        begin = self.me.rank - self.me.local_rank
        here = range(begin, begin + number("LOCAL_WORLD_SIZE", self.me.world_size))
        there: set[str] = set()

        def needs(owners: dict[str, int]) -> set[str]:
            there.update(name for name, rank in owners.items() if self.lies_in_directory(name, rank in here))
            return {name for name in there if first and owners[name] not in here}

        owners, files = exchanged(self._ranks, found.files, needs)
        files = {name: content for name, content in files.items() if name in there}
        path = ""
        for turn in (first, not first):  # the others find it made
            reason = ""
            try:
                if turn:
                    self._directory = Directory(files, path)
                if turn and first:
                    self._directory.name_only(set(owners) - there)
            except OSError as error:
                reason = f"step {found.step} cannot be read from memory: {error.strerror}"
            self._ranks.require(reason)
            paths = self._ranks.blobs(self._directory.path.encode() if self._directory else b"")
            path = paths[begin].decode(errors="surrogateescape")
        return path, list(owners)

    def release(self) -> None:
        self._read = None
        super().release()


class ZeroDirectoryCheckpointer(ShardedDirectoryCheckpointer):
    """With DeepSpeed. A step of a world of another size is converted by DeepSpeed's own converter, by all ranks together; all see one
    `checkpoint_dir` then.

    `is_universal`: the directory that was loaded last has a universal checkpoint, until `release`."""

    def __init__(self, checkpoint_dir: str | os.PathLike, **options: Any):
        self._universal = ""
        super().__init__(checkpoint_dir, **options)

    def lies_in_directory(self, name: str, of_node: bool) -> bool:
        return of_node or not name.endswith(PARTITION) or os.path.basename(name).startswith(EXPERTS)

    @property
    def is_universal(self) -> bool:
        return bool(self._universal)

    def _opened(self, found: FoundFiles) -> tuple[str, list[str]]:
        tag = f"{TAG}{found.step}"
        directory = os.path.join(found.directory, tag) if found.directory else ""
        names = os.listdir(directory) if os.path.isdir(directory) else list(found.files)
        has_partitions = any(name.endswith(PARTITION) for name in names)
        if found.world_size == self.me.world_size or not any(row[0] for row in self._ranks.gather([has_partitions])):
            return super()._opened(found)  # without ZeRO it fits into any world
        from ..deepspeed.universal import made_universal

        below = f"{tag}/"
        parts = {name.removeprefix(below): content for name, content in found.files.items() if name.startswith(below)}
        others = {name: content for name, content in found.files.items() if not name.startswith(below)}
        self._universal = made_universal(self._ranks, self.place, replace(found, files=parts, directory=directory), tag)
        path, names = self._laid_out(replace(found, files=others))
        self._ranks.together(lambda: self._link(path, found.directory, tag))
        return path, names

    def _link(self, path: str, directory: str, tag: str) -> None:
        """What lies on a disk, and the converted step in the place of DeepSpeed's own."""
        if self.me.local_rank:
            return
        for name in os.listdir(directory) if directory else ():
            if name != tag:
                os.symlink(os.path.join(directory, name), os.path.join(path, name))
        os.symlink(os.path.join(self._universal, tag), os.path.join(path, tag))
        with open(os.path.join(path, LATEST_UNIVERSAL), "w", encoding="utf-8") as file:
            file.write(tag)

    def release(self) -> None:
        super().release()
        if self._universal and self.me.rank == 0:  # all ranks have loaded, or none does any more
            shutil.rmtree(self._universal, ignore_errors=True)
        self._universal = ""
