"""Several files in one snapshot. ckpt/snapshot/file_list.hpp says how they lie in it."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from . import library
from .image import Image
from .skeleton import InMainMemory, Skeleton, pickled

LIST_NAME_BYTES = 32  # TROUPE_LIST_NAME_BYTES
_PART = struct.Struct("=i4xQQQQQ")  # troupe_part
_LINES_BYTES = 1 << 14  # of the names of files; an image that has more is asked again


@dataclass
class Part:
    """Of a file, behind the part before it: `head` and then the storages, byte behind byte; or with `archive` a file of
    torch.save, at a multiple of 64, of which `head` is the pickle. The storages stay as they are until the save is over.

    A save sets where the part lies in its file (`begin`) and how long it is (`size`), in bytes.
    """

    head: bytes
    storages: Sequence[torch.UntypedStorage] = ()
    archive: bool = False
    begin: int = -1
    size: int = -1

    @classmethod
    def of_state(cls, state: Any) -> Part:
        """What torch.save writes. Raises what `pickled` raises."""
        return cls.of_skeleton(pickled(state))

    @classmethod
    def of_skeleton(cls, skeleton: Skeleton) -> Part:
        return cls(skeleton.pickle, skeleton.storages, True)


@dataclass
class File:
    """`name`: below the step's directory, as "rank_0.pt" or "mp_rank_00/model.pt"; of no other file of the step, at any rank."""

    name: str
    parts: list[Part]

    @classmethod
    def of_state(cls, name: str, state: Any) -> File:
        return cls(name, [Part.of_state(state)])

    @classmethod
    def of_bytes(cls, name: str, content: bytes) -> File:
        return cls(name, [Part(content)])


@dataclass
class Files:
    """What a rank keeps of a step, if that is more than one file of torch.save.

    `last_file_room`: for a file of at most so many bytes which comes when all else is copied (`Arena.last_file`): the image is
    whole only then.
    """

    files: list[File]
    last_file_room: int = 0
    located: InMainMemory | None = field(default=None, init=False, repr=False)
    _heads: bytes = field(default=b"", init=False, repr=False)

    @property
    def names(self) -> list[str]:
        return [file.name for file in self.files]

    @property
    def storages(self) -> list[torch.UntypedStorage]:
        return list(itertools.chain.from_iterable(part.storages for part in self.parts))

    @property
    def parts(self) -> list[Part]:
        return [part for file in self.files for part in file.parts]

    def raw(self) -> Raw:
        """For the native library: files and parts, each with how many there are."""
        parts = self.parts
        self._heads = b"".join(part.head for part in parts)
        at = ctypes.cast(ctypes.c_char_p(self._heads), ctypes.c_void_p).value or 0
        packed = bytearray()
        for part in parts:
            packed += _PART.pack(part.archive, at, len(part.head), len(part.storages), 0, 0)
            at += len(part.head)
        raw_parts = (ctypes.c_char * max(1, len(packed))).from_buffer(packed or bytearray(1))
        raw_files = (library.RawFile * len(self.files))()
        for raw, file in zip(raw_files, self.files, strict=True):
            raw.name, raw.parts = file.name.encode(errors="surrogateescape"), len(file.parts)
        return raw_files, len(self.files), raw_parts, len(parts)

    def lay_out(self) -> None:
        """Says where each part will lie, before there is a save."""
        raw = self.raw()
        sizes = [storage.nbytes() for storage in self.storages]
        library.call("troupe_lay_out", *raw, (ctypes.c_uint64 * len(sizes))(*sizes), len(sizes))
        self.placed(raw[2])

    def placed(self, raw_parts: ctypes.Array) -> None:
        """Takes over where the native library has put the parts."""
        rows = _PART.iter_unpack(bytes(raw_parts)) if self.parts else iter(())
        for part, (*_, begin, size) in zip(self.parts, rows, strict=True):
            part.begin, part.size = begin, size


Raw = tuple[ctypes.Array, int, ctypes.Array, int]  # of Files.raw


class FilesAgain(Files):
    """Files that were saved before, with all sizes as they were then but for those of the first heads."""

    def __init__(
        self,
        first: Files,
        raw: Raw,
        heads: Sequence[bytes],
        storages: Sequence[torch.UntypedStorage],
        located: InMainMemory,
    ):
        """`raw`: of the first, which is this one's as well. `heads`: of its first parts. `storages`: of all parts, kept meanwhile."""
        super().__init__(first.files)
        self.located = located
        self.moved = True  # a part, since the save before
        self._first, self._raw, self._own_heads, self._kept = first, raw, list(heads), storages

    @property
    def storages(self) -> list[torch.UntypedStorage]:
        return list(self._kept)

    def raw(self) -> Raw:
        """Between two saves: the first heads are told anew, which may be where others were."""
        raw_parts = self._raw[2]
        for which, head in enumerate(self._own_heads):
            at = ctypes.cast(ctypes.c_char_p(head), ctypes.c_void_p).value or 0
            row = list(_PART.unpack_from(raw_parts, which * _PART.size))
            _PART.pack_into(raw_parts, which * _PART.size, row[0], at, len(head), *row[3:])
        self._before = bytes(raw_parts)
        return self._raw

    def placed(self, raw_parts: ctypes.Array) -> None:
        self.moved = bytes(raw_parts) != self._before
        if self.moved:
            super().placed(raw_parts)


class HeldFiles(Mapping[str, memoryview]):
    """The files of an image in memory, by name; of an image that is one file of torch.save, none.

    Tensors made of that memory keep it, as those of `View.load` do. What a program writes there is seen by itself alone.
    """

    def __init__(self, image: Image, mapped: Callable[[], AbstractContextManager[None]]):
        """`mapped`: the image is not written to meanwhile. Raises CheckpointError for a list that is damaged."""
        with mapped(), open(image.path, "rb") as file:
            self.memory = memoryview(mmap.mmap(file.fileno(), image.bytes, access=mmap.ACCESS_COPY))
        self._files: dict[str, memoryview] = {}
        for begin, size, _, name in _listed("troupe_files", self.memory):
            self._files[name] = self.memory[begin : begin + size]

    def __getitem__(self, name: str) -> memoryview:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def list_name(shard: int) -> str:
    """What the list of a shard's files is called in the step's directory."""
    name = ctypes.create_string_buffer(LIST_NAME_BYTES)
    library.load().troupe_list_name(shard, name)
    return name.value.decode()


def is_list_name(name: str) -> bool:
    return name.startswith(list_name(0).rstrip("0"))


def files_of_list(content: bytes) -> list[tuple[str, int, int]]:
    """Name, bytes and crc32 of each file in the list of a shard as it lies on a disk. Raises CheckpointError for one that is damaged."""
    memory = memoryview(bytearray(content))
    return [(name, size, crc32) for _, size, crc32, name in _listed("troupe_listed", memory)]


def _listed(function: str, memory: memoryview) -> list[tuple[int, int, int, str]]:
    raw = (library.Bytes * len(memory)).from_buffer(memory)
    room = _LINES_BYTES
    while True:
        lines = ctypes.create_string_buffer(room)
        needed = library.call(function, raw, len(memory), lines, room)
        if needed <= room:
            break
        room = needed
    rows = (line.split("\t", 3) for line in lines.value.decode(errors="surrogateescape").splitlines())
    return [(int(begin), int(size), int(crc32), name) for begin, size, crc32, name in rows]
