"""A state in memory, and where it is written."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import library


DDP, FSDP, MEGATRON, DEEPSPEED = range(4)  # whose trackers are written: see Destination


@dataclass(frozen=True)
class Image:
    """A whole state in memory, as a file of torch.save."""

    step: int
    generation: int
    save: int  # of that generation; of two images the newer has the higher (generation, save)
    rank: int
    world_size: int
    bytes: int
    slot: int
    sequence: int  # of two images of an arena the newer has the higher
    descriptor: int  # of the memory; belongs to the arena

    @property
    def path(self) -> str:
        """The image as a file, for this process and as long as the arena is open."""
        return f"/proc/self/fd/{self.descriptor}"

    @classmethod
    def of(cls, raw: library.RawImage) -> Image:
        return cls(*(getattr(raw, name) for name, *_ in library.RawImage._fields_))


@dataclass(frozen=True)
class Destination:
    """The file `<place>/<directory>/<file>`, and the step that it belongs to.

    `place`: an absolute path. `directory`: "." for a file in the place itself, which is this step's alone. `framework`: whose
    trackers are written, 0 DDP, 1 FSDP, 2 Megatron, 3 DeepSpeed. The step is complete when all of `shards` are written, of
    which this is number `shard`, and all within `save_within` seconds. Of older steps those are kept that are among the
    `keep_latest` newest or multiples of `keep_every`; with 0 for both, all. `resumed_from`: the step that training went on from
    before it came to this one, if that is known; the newest complete step may be replaced if it is later and was there before.
    `resumed_after`: the number of the last save before that.
    """

    place: str
    directory: str
    file: str
    framework: int = 0
    shard: int = 0
    shards: int = 1
    save_within: float = 600
    keep_latest: int = 0
    keep_every: int = 0
    resumed_from: int | None = None
    resumed_after: int = 0

    def raw(self) -> library.RawDestination:
        return library.RawDestination(
            os.fsencode(self.place),
            os.fsencode(self.directory),
            os.fsencode(self.file),
            self.framework,
            self.shard,
            self.shards,
            round(self.save_within * 1000),
            self.keep_latest,
            self.keep_every,
            0 if self.resumed_from is None else self.resumed_from + 1,
            self.resumed_after,
        )


@dataclass(frozen=True)
class Place:
    """A checkpoint directory and the framework that saves there: whose images are whose."""

    number: int  # the same at all ranks: see memory.place_number
    name: str  # for people


@dataclass
class Unfinished:
    """Memory for an image that comes from elsewhere."""

    raw: library.RawImage
    address: int

    @property
    def memory(self) -> memoryview:
        """`bytes` of it, to be filled; not to be used after `finish` or `abandon`."""
        return memoryview((library.Bytes * self.raw.bytes).from_address(self.address)).cast("B")
