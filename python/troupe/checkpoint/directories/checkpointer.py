"""Checkpoints as directories `checkpoint-<step>`, whose files a framework has written: the same at all ranks but for a few small ones."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ..checkpointer import Checkpointer
from ..contents import File, Files, list_name
from ..copies import Redundancy
from ..others import Other, Others
from ..retention import DeletionStrategy, StorageType
from .capture import SMALL, Capture, bytes_of, is_plain
from .directory import Directory
from .steps import PREFIX, above, others, whole_others

GIVEN_BYTES = 16 << 20  # that a rank gives to the others


class StepDirectories(Checkpointer):
    """What a framework writes to a directory is kept, and comes back as a directory. All methods but `release` are collective.

    `replicated`: the state is the same at all ranks. `saves`: this rank has to have large files.
    """

    replicated: bool
    saves: bool

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike,
        *,
        local_shard_num: int = 1,
        global_shard_num: int = 1,
        save_timeout: float = 600,
        images: int = 2,
        copy_on_write: bool = False,
        redundancy: Redundancy | None = None,
        deletion_strategy: DeletionStrategy | None = None,
    ):
        self._directory: Directory | None = None
        self.others = Others(self, lambda _: None)
        super().__init__(
            checkpoint_dir,
            local_shard_num=local_shard_num,
            global_shard_num=global_shard_num,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
            redundancy=redundancy,
            deletion_strategy=deletion_strategy,
        )

    @contextlib.contextmanager
    def noting(self, capture: Capture) -> Iterator[None]:
        """While the framework writes to `capture.root`, below a directory with the name of the step's."""
        with capture.noting(self.saves):
            yield

    @abstractmethod
    def save_directory(
        self, step: int, files: Sequence[File], storage_type: StorageType = StorageType.DISK
    ) -> bool:
        """The files that this rank has written. Returns and raises as `save_files`."""

    @abstractmethod
    def load_directory(self, disk: bool = True) -> tuple[int, str] | None:
        """The newest step, and a directory with its files, which is there until `release`. `disk`: whether complete steps at the
        place are looked for, or memory alone. None: there is nothing."""

    def load_newest(self, last_file: str) -> tuple[int, str] | None:
        """As `load_directory`, of all makers: a directory that the framework itself has written to its end is taken if its number is
        higher than that of every step of Troupe's that can be read, as the framework's own rule has it. `last_file`: it is the last one
        that the framework writes."""

        def newest(than: int) -> Other | None:
            # What other ranks have not written yet lacks nothing that can be seen here.
            return next((one for one in whole_others(self.place, last_file, than) if self.replicated or not one.begun), None)

        self.others = Others(self, newest)
        self.note_others()
        found, other = self.others.newest_of_all(self.load_directory, lambda found: found[0])
        if not other:
            return found
        self.others.pass_by(above(self.place, other.step))  # those could not be read
        return other.step, other.path

    def note_others(self) -> None:
        """When training begins: directories of the framework itself that it may come to. Not collective."""
        self.others.pass_by(one for one in others(self.place) if not one.begun)

    def any_rank(self, mine: bool) -> bool:
        """Whether this is so at any rank. Collective."""
        return any(row[0] for row in self._ranks.gather([mine]))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While the framework reads that directory."""
        yield

    def release(self) -> None:
        """Not collective: when all local ranks have read what they need."""
        if self._directory:
            self._directory.close()
        self._directory = None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.release()
        super().close()


class DirectoryCheckpointer(StepDirectories):
    """One state, which local rank 0 of each node keeps, with the files of all ranks. Rank 0 writes it to
    `<checkpoint_dir>/checkpoint-<step>/`.

    Every rank gives the files that it has written: at ranks that save the large ones are the same everywhere (weights, optimizer), at
    the others there are small ones (`rng_state_<rank>.pth`), which all get. Of a file that several ranks have, small, rank by
    rank the lowest one's counts. Nothing is the less in memory when a node is lost.
    """

    replicated = True

    def __init__(self, checkpoint_dir: str | os.PathLike, **options: Any):
        """`options`: as for StepDirectories, but for the numbers of shards."""
        super().__init__(checkpoint_dir, **options)
        self._saving = [rank for rank, [saves] in enumerate(self._ranks.gather([self.saves])) if saves]

    @property
    def saves(self) -> bool:  # type: ignore[override]
        """Whether this rank has to have the large files."""
        return self._arena is not None

    def default_file(self, step: int) -> tuple[str, str]:
        return f"{PREFIX}{step}", list_name(0)

    # ---- Saving ----

    def save_directory(
        self, step: int, files: Sequence[File], storage_type: StorageType = StorageType.DISK
    ) -> bool:
        """As `save_files`. Collective. Raises CheckpointError at all ranks, with the file's name, if a rank would have to give more
        than 16 MiB to others, or tensors."""
        whole = self._of_all(step, files)
        return self.save_files(step, Files(whole if self.saves else []), storage_type)

    def _of_all(self, step: int, mine: Sequence[File]) -> list[File]:
        listed = self._ranks.blobs("\0".join(file.name for file in mine).encode(errors="surrogateescape"))
        names = [set(_text(row).split("\0")) - {""} for row in listed]
        me = self.me.rank
        given, reason, size = [], "", 0
        for file in mine:
            if any(file.name in before for before in names[:me]):
                continue
            lacking = any(file.name not in names[rank] for rank in self._saving)
            others_have_theirs = len(self._saving) > 1 and is_plain(file) and len(bytes_of(file)) < SMALL
            if not lacking and not others_have_theirs:
                continue
            size += len(bytes_of(file))
            if not is_plain(file):
                reason = f"step {step}: '{file.name}' has tensors, and is not written at all ranks that save"
            elif size > GIVEN_BYTES:
                reason = f"step {step}: '{file.name}' makes more than {GIVEN_BYTES >> 20} MiB that other ranks have not"
            else:
                given.append(file)
        self._ranks.require(reason)
        whole = {file.name: file for file in mine}
        for rank, row in enumerate(self._ranks.blobs(_packed(given))):
            if rank != me:
                whole.update((file.name, file) for file in _unpacked(row))
        return [whole[name] for name in sorted(whole)]

    # ---- Loading ----

    def load_directory(self, disk: bool = True) -> tuple[int, str] | None:
        """Raises CheckpointError as `load_checkpoint` does, and if there is no memory for the files or the step has none."""
        self.release()
        self._fresh = False
        found = self._loads().newest(disk, lambda seen, image: seen.files(image))
        if not found:
            return None
        image, files = found
        self._has(image)
        reason = "" if files else f"step {image.step} at {self.place} is no directory of files"
        try:
            if files and (self.saves or self.me.local_rank == 0):
                self._directory = Directory(files)
        except OSError as error:
            reason = f"step {image.step} cannot be read from memory: {error.strerror}"
        self._ranks.require(reason)
        paths = self._ranks.blobs(self._directory.path.encode() if self._directory else b"")
        return image.step, _text(paths[self.me.rank - self.me.local_rank])


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _packed(files: Sequence[File]) -> bytes:
    contents = [bytes_of(file) for file in files]
    rows = [[file.name, len(content)] for file, content in zip(files, contents, strict=True)]
    head = json.dumps(rows).encode()
    return struct.pack("<Q", len(head)) + head + b"".join(contents)


def _unpacked(raw: bytes) -> list[File]:
    at = 8 + struct.unpack_from("<Q", raw)[0]
    files = []
    for name, size in json.loads(raw[8:at]):
        files.append(File.of_bytes(name, raw[at : at + size]))
        at += size
    return files
