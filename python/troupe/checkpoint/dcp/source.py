"""Where the files of a step are read from: the memory of the ranks that have them, or a directory.

A reader asks for bytes of files and does not know more of it. A world of another size, or one whose ranks hold other
files than they have saved, is another source with the same two questions.
"""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from .. import library
from ..files import open_regular
from ..library import CheckpointError
from ..ranks import Agreement, Rank
from ..stripes import crc32
from . import metadata

PIECE = 64 << 20  # bytes that are sent at once
REQUESTS_MAX = 1 << 24  # of a rank to another
_NUMBERS = 3  # of a request: the file, begin, end


@dataclass(frozen=True)
class Extent:
    """Bytes `begin` to `end` of a file of the step."""

    file: str
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


class StepSource(ABC):
    """The files of one step. Both questions are collective calls; CheckpointError names file, rank and step."""

    step: int | None  # where it is known
    where: str  # for people

    @abstractmethod
    def metadata(self) -> bytes:
        """The content of `.metadata`."""

    @abstractmethod
    def fetch(self, wanted: Sequence[Extent], files: Sequence[str]) -> dict[Extent, memoryview]:
        """What this rank wants. `files`: all that may be asked for, the same at all ranks in the same order."""

    def close(self) -> None:
        """What was fetched stays."""


class DirectorySource(StepSource):
    """Each rank reads what it wants. Not collective."""

    def __init__(self, directory: str, step: int | None, me: Rank):
        self.step, self.where, self._me = step, directory, me
        self._mapped: dict[str, memoryview] = {}

    def metadata(self) -> bytes:
        return bytes(self._file(metadata.NAME))

    def fetch(self, wanted: Sequence[Extent], files: Sequence[str]) -> dict[Extent, memoryview]:
        del files
        return {extent: self._read(extent) for extent in wanted}

    def close(self) -> None:
        self._mapped.clear()

    def _read(self, extent: Extent) -> memoryview:
        """Raises CheckpointError for what is no undamaged file of torch.save: PyTorch itself does not look at the checksums."""
        whole = self._file(extent.file)
        if not 0 <= extent.begin <= extent.end <= len(whole):
            raise self._error(
                extent.file, f"it has {len(whole)} bytes, and {metadata.NAME} names bytes up to {extent.end}"
            )
        part = whole[extent.begin : extent.end]
        try:
            content = (library.Bytes * len(part)).from_buffer(part)
            library.call("troupe_verify", content, len(part))
        except CheckpointError as error:
            raise self._error(extent.file, f"bytes {extent.begin} to {extent.end}: {error}") from error
        return part

    def _file(self, name: str) -> memoryview:
        if name not in self._mapped:
            try:
                with open_regular(os.path.join(self.where, name)) as file:
                    size = os.fstat(file.fileno()).st_size
                    # Of one's own: a tensor that is made of it may be written to.
                    content = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE) if size else bytearray()
            except OSError as error:
                raise self._error(name, error.strerror or str(error)) from error
            self._mapped[name] = memoryview(content)
        return self._mapped[name]

    def _error(self, name: str, why: str) -> CheckpointError:
        of = f" of step {self.step}" if self.step is not None else ""
        return CheckpointError(f"rank {self._me.rank}: {os.path.join(self.where, name)}{of}: {why}")


class MemorySource(StepSource):
    """Each rank has files of the step in memory; what it lacks comes from the ranks that have it."""

    def __init__(self, ranks: Agreement, step: int, held: Mapping[str, memoryview]):
        self.step, self.where, self._ranks, self._held = step, "memory", ranks, held

    def close(self) -> None:
        self._held = {}

    def metadata(self) -> bytes:
        """From the lowest rank that has it."""
        own = self._held.get(metadata.NAME)
        sizes = [row[0] for row in self._ranks.gather([-1 if own is None else len(own)])]
        source = next((rank for rank, size in enumerate(sizes) if size >= 0), None)
        if source is None:
            raise CheckpointError(
                f"step {self.step} in memory has no {metadata.NAME} at any rank: "
                "it was not saved by torch.distributed.checkpoint"
            )
        if own is not None and source == self._ranks.me.rank:
            content = bytearray(own)
        else:
            content = bytearray(sizes[source])
        others = [rank for rank in range(len(sizes)) if rank != source]
        if others and content:
            self._ranks.send(torch.frombuffer(content, dtype=torch.uint8), source, others, PIECE)
        sums = [row[0] for row in self._ranks.gather([_sum_of(content)])]
        self._require_whole([source] if sums[self._ranks.me.rank] != sums[source] else [])
        return bytes(content)

    def fetch(self, wanted: Sequence[Extent], files: Sequence[str]) -> dict[Extent, memoryview]:
        """Ranks tell each other what they need as numbers, and send bytes, which are compared by checksum."""
        me = self._ranks.me
        holders, reason = self._holders(files), ""
        found: dict[Extent, memoryview] = {}
        asked: list[list[Extent]] = [[] for _ in range(me.world_size)]
        number = {name: i for i, name in enumerate(files)}
        for extent in wanted:
            holder = holders[number[extent.file]] if extent.file in number else None
            if holder is None:
                reason = reason or self._error(extent.file, "no rank has it in memory")
            elif holder != me.rank:
                asked[holder].append(extent)
            elif extent.begin < 0 or not extent.begin <= extent.end <= len(self._held[extent.file]):
                reason = reason or self._error(extent.file, "its metadata names bytes that it does not have")
            else:
                found[extent] = self._held[extent.file][extent.begin : extent.end]
        if any(len(each) > REQUESTS_MAX for each in asked):
            reason = reason or self._error(metadata.NAME, f"more than {REQUESTS_MAX} items of one rank")
        self._ranks.require(reason)
        self._trade(asked, number, list(files), found)
        return found

    def _holders(self, files: Sequence[str]) -> list[int | None]:
        """The rank that has each file."""
        mine = [i for i, name in enumerate(files) if name in self._held]
        most = max(row[0] for row in self._ranks.gather([len(mine)]))
        rows = self._ranks.gather([*mine, *[-1] * (most - len(mine))])
        holders: list[int | None] = [None] * len(files)
        for rank in reversed(range(len(rows))):
            for i in rows[rank]:
                if 0 <= i < len(files):
                    holders[i] = rank
        return holders

    def _trade(
        self,
        asked: Sequence[Sequence[Extent]],
        number: Mapping[str, int],
        files: Sequence[str],
        found: dict[Extent, memoryview],
    ) -> None:
        me = self._ranks.me
        counts = self._ranks.gather([len(each) for each in asked])
        if not any(any(row) for row in counts):
            return
        requests: dict[int, list[memoryview]] = {}  # of each rank here
        reason = ""
        for to, source in _pairs(me):
            numbers = [n for one in asked[to] for n in (number[one.file], one.begin, one.end)]
            theirs = torch.zeros((counts[source][me.rank], _NUMBERS), dtype=torch.int64)
            self._swap(torch.tensor(numbers, dtype=torch.int64), to, theirs.view(-1), source)
            try:
                requests[source] = [self._given(*row, files) for row in theirs.tolist()]
            except CheckpointError as error:
                reason = reason or f"asked by rank {source}: {error}"
        self._ranks.require(reason)
        sent, came = [0] * me.world_size, [0] * me.world_size
        for to, source in _pairs(me):
            giving = bytearray().join(requests[to])
            taking = bytearray(sum(one.size for one in asked[source]))
            self._swap(_memory(giving), to, _memory(taking), source)
            sent[to], came[source] = _sum_of(giving), _sum_of(taking)
            whole, at = memoryview(taking), 0
            for one in asked[source]:
                found[one] = whole[at : at + one.size]
                at += one.size
        sums = self._ranks.gather(sent)
        self._require_whole([source for _, source in _pairs(me) if sums[source][me.rank] != came[source]])

    def _swap(self, giving: torch.Tensor, to: int, taking: torch.Tensor, source: int) -> None:
        self._ranks.exchange(
            [(giving, to)] if giving.numel() else [],
            [(taking, source)] if taking.numel() else [],
            PIECE // giving.element_size(),
        )

    def _given(self, file: int, begin: int, end: int, files: Sequence[str]) -> memoryview:
        """What another rank asks for. Raises CheckpointError if that cannot be."""
        content = self._held.get(files[file]) if 0 <= file < len(files) else None
        if content is None or not 0 <= begin <= end <= len(content):
            raise CheckpointError(f"there are no bytes {begin} to {end} of file {file}")
        return content[begin:end]

    def _require_whole(self, damaged: Sequence[int]) -> None:
        """`damaged`: ranks whose bytes are not those that they have sent."""
        of = ", ".join(str(rank) for rank in damaged)
        self._ranks.require(f"step {self.step} came damaged from rank {of}" if damaged else "")

    def _error(self, name: str, why: str) -> str:
        return f"{name} of step {self.step} in memory: {why}"


def _pairs(me: Rank) -> list[tuple[int, int]]:
    """To which rank this one gives and from which it takes at the same time, until it has met all others."""
    world = me.world_size
    return [((me.rank + by) % world, (me.rank - by) % world) for by in range(1, world)]


def _memory(content: bytearray) -> torch.Tensor:
    return torch.frombuffer(content, dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)


def _sum_of(content: bytearray) -> int:
    return crc32(_memory(content)) if content else 0
