"""DeepSpeed's steps among those of all checkpointers: their directories, their files, and which rank needs which."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..checkpointer import Checkpointer
from ..contents import Files, list_name
from ..exchange import exchanged
from ..files import MANIFEST
from ..image import DDP, DEEPSPEED
from ..loads import FoundFiles
from ..retention import StorageType
from .engine import Held, Saving
from .universal import converted

TRACKER = "latest"


class Steps(Checkpointer):
    """Each rank is a shard. `prefix`: of tags, for the directory of a step that this process has not saved itself."""

    framework = DEEPSPEED

    def __init__(self, checkpoint_dir: str | os.PathLike, prefix: str, **options: Any):
        self._prefix = prefix
        self._directory: tuple[int, str] | None = None  # of the step that was saved last
        self._error: Exception | None = None
        super().__init__(checkpoint_dir, **options)

    def default_file(self, step: int) -> tuple[str, str]:
        if self._error:  # while the ranks agree on a save, in which it is this rank's word
            raise self._error
        known = self._directory is not None and self._directory[0] == step
        directory = self._directory[1] if known else f"{self._prefix}{step}"
        return directory, list_name(self.shard or 0)

    def keep(self, step: int, saving: Saving, storage: StorageType, latest: bool) -> bool:
        """All that DeepSpeed has given. Collective. `latest`: the file of this name is to speak of it."""
        self._directory = step, os.path.basename(saving.directory)
        self.framework = DEEPSPEED if latest else DDP
        self._error = saving.error
        try:
            return self.save_files(step, Files(saving.files), storage)
        finally:
            self._error = None

    @property
    def fresh(self) -> bool:
        """Nothing was loaded or saved by this process."""
        return self._fresh

    def latest_is_of_deepspeed(self) -> bool:
        """The place's `latest` names a step that Troupe has not written. Collective; rank 0's word."""
        foreign = False
        if self.me.rank == 0:
            try:
                with open(os.path.join(self.place, TRACKER), encoding="utf-8") as file:
                    directory = os.path.join(self.place, file.read(4096).strip())
                ours = os.path.exists(os.path.join(directory, MANIFEST))
                foreign = os.path.isdir(directory) and not ours
            except (OSError, UnicodeDecodeError):
                foreign = False
        return bool(self._ranks.gather([foreign])[0][0])

    @contextlib.contextmanager
    def converted(self, found: FoundFiles, tag: str) -> Iterator[str]:
        """As a universal checkpoint below a directory: see `universal.converted`."""
        with converted(self._ranks, self.place, found, tag) as directory:
            yield directory

    def shared(self, found: FoundFiles, needs: Callable[[list[str]], set[str]]) -> Held:
        """With what this rank needs of other ranks' files. Collective."""
        directory = os.path.join(self.place, self.found_file(found.step)[0])
        owners, files = exchanged(self._ranks, found.files, lambda owners: needs(list(owners)))
        return Held(directory, found.step, files, list(owners))


def needed(
    names: Sequence[str], pattern: str, share: tuple[int, int], models: bool, all_of_them: bool
) -> set[str]:
    """What a rank reads of a step. `pattern`: of the model states of its kind; `share`: its place among so many parts of the model
    (DeepSpeed looks into the first file, too, for how many there are). `models`: parts of the model are in further files, of
    layers or experts. `all_of_them`: and it reads other ranks' optimizer states.
    """
    if all_of_them:
        return set(names)
    if models:
        others = {name for name in names if name.endswith("optim_states.pt")}
        return {name for name in names if name not in others or name.startswith("expp_rank_")}
    found = sorted(fnmatch.filter(names, pattern))
    if not found:
        return set()
    rank, size = share
    return {found[0], found[min(rank * len(found) // size, len(found) - 1)]}


