"""Where DeepSpeed puts the files of a step and gets them from: its own protocol for checkpoint engines."""

from __future__ import annotations

import os
import pickle
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointEngine

from ..contents import File, Part
from ..files import first_line
from ..kept_skeleton import Skeletons
from ..library import CheckpointError
from ..window import Window

_TAG = re.compile(r"(?!\.)(?:[^/]*[^/0-9])?([0-9]{1,18})")


def step_of(tag: str) -> int | None:
    """The number that a tag ends with: "global_step50" is step 50, and so is "50". None: the tag is no step's."""
    found = _TAG.fullmatch(tag)
    return int(found[1]) if found else None


class Saving:
    """The files of a step below `directory`, which DeepSpeed gives one after the other; `keep` takes all at once.

    Their tensors stay referenced until then, and are copied once. DeepSpeed changes none of them in between. A file that cannot
    be pickled is no error yet: other ranks wait in `keep` and have to hear of it there.
    """

    def __init__(
        self, directory: str, skeletons: defaultdict[str, Skeletons], keep: Callable[[Saving], bool]
    ):
        """`skeletons`: by the files' names, kept from step to step, so that what has not changed is not pickled again."""
        self.directory = os.path.abspath(directory)
        self._skeletons = skeletons
        self.files: list[File] = []
        self.error: Exception | None = None  # of this rank
        self.kept = False  # at all ranks
        self._keep = keep

    def holds(self, path: str) -> bool:
        return os.path.commonpath([self.directory, os.path.abspath(path)]) == self.directory

    def add(self, state: Any, path: str) -> None:
        name = os.path.relpath(os.path.abspath(path), self.directory)
        try:
            self.files.append(File(name, [Part.of_skeleton(self._skeletons[name].of(state))]))
        except Exception as error:
            self.error = self.error or error

    def commit(self) -> bool:
        try:
            self.kept = self._keep(self)
        except Exception as error:  # after DeepSpeed's last barrier, at which the other ranks wait
            self.error = error
        self.files = []
        return self.kept


class Held:
    """A step's files in memory, as if they lay below `directory`. `names`: of all ranks' files, sorted."""

    def __init__(
        self, directory: str, step: int, files: Mapping[str, memoryview], names: list[str]
    ):
        self.directory = directory
        self.step = step
        self.files = files
        self.names = names

    def path(self, name: str) -> HeldPath:
        return HeldPath(os.path.join(self.directory, name))


class HeldPath(os.PathLike):
    """A path of a file that need not be on the disk. DeepSpeed looks whether it is there before it loads it: what the system sees
    is there always."""

    def __init__(self, path: str):
        self.path = path

    def __fspath__(self) -> str:
        return os.devnull

    def __str__(self) -> str:
        return self.path


class MemoryCheckpointEngine(CheckpointEngine):
    """While a step is being saved or loaded its files go through memory; all else is `plain`'s, which is DeepSpeed's own."""

    def __init__(self, plain: CheckpointEngine, rank: int):
        super().__init__()
        self.name = "TroupeCheckpointEngine"
        self.plain = plain
        self.rank = rank
        self.saving: Saving | None = None
        self.held: Held | None = None

    def create(self, info: Any) -> None:
        if self.saving is None:
            self.plain.create(info)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """A step's directory appears when there is something to write to it."""
        if self.saving is None or not self.saving.holds(path):
            self.plain.makedirs(path, exist_ok=exist_ok)

    def save(self, state_dict: Any, path: str) -> None:
        if self.saving is not None and self.saving.holds(path):
            self.saving.add(state_dict, path)
        else:
            self.plain.save(state_dict, path)

    def load(self, path: str | HeldPath, map_location: Any = None) -> Any:
        """Raises CheckpointError that names rank and file, and the step in memory, for a file that is not there, or is none."""
        where = str(path)
        if self.held is None or os.path.dirname(where) != self.held.directory:
            return self._loaded(where, where, map_location)
        name, at = os.path.basename(where), f"step {self.held.step} in memory"
        memory = self.held.files.get(name)
        if memory is None:
            raise CheckpointError(f"rank {self.rank}: {at} has no file {name} for this rank")
        return self._loaded(Window(memory), f"{at}: {name}", map_location)

    def _loaded(self, source: Any, name: str, map_location: Any) -> Any:
        try:
            # As DeepSpeed does: the states hold classes of its own and of the script's.
            return torch.load(source, map_location=map_location, weights_only=False)
        except OSError as error:
            raise CheckpointError(f"rank {self.rank}: {name}: {error.strerror or error}") from error
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise CheckpointError(f"rank {self.rank}: {name}: {first_line(error)}") from error

    def commit(self, info: Any) -> bool:
        return self.plain.commit(info) if self.saving is None else self.saving.commit()

    def preserves_storage_sharing(self) -> bool:
        """So DeepSpeed clones views before it gives them here: what is saved is whole storages, as with torch.save."""
        return True
