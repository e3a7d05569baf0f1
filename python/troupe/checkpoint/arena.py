"""A process's images in memory."""

from __future__ import annotations

import ctypes
from array import array
from dataclasses import dataclass
from typing import Any

import torch

from . import library
from .skeleton import Skeleton, pickled


@dataclass(frozen=True)
class Image:
    """A whole state in memory, as a file of torch.save."""

    step: int
    generation: int
    rank: int
    world_size: int
    bytes: int
    slot: int
    descriptor: int  # of the memory; belongs to the arena

    @property
    def path(self) -> str:
        """The image as a file, for this process and as long as the arena is open."""
        return f"/proc/self/fd/{self.descriptor}"


class Arena:
    """Memory for the newest images of this process's state, at least two: a save never overwrites the newest one.

    `images`: how many at once, 2 to 4; one, if memory does not suffice for two (see `images`). `threads` copy; 0: as many
    as this process may run on, at most 8. One thread of the program at a time may use it.
    """

    def __init__(self, images: int = 2, threads: int = 0):
        self._handle = library.call("troupe_arena_open", images, threads)

    def close(self) -> None:
        """Gives the memory back, but for what loaded tensors still use."""
        if self._handle:
            library.load().troupe_arena_close(self._handle)
        self._handle = None

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def images(self) -> int:
        """How many images there can be; 0 before the first save. With 1, a process that dies while it saves has none."""
        return library.load().troupe_arena_slots(self._handle)

    def prepare(self, state: Any) -> None:
        """Makes memory for states like this one, in the background: without it the first save takes some times longer."""
        skeleton = state if isinstance(state, Skeleton) else pickled(state)
        bytes = skeleton.bytes + 4096 + 512 * len(skeleton.storages)
        library.call("troupe_arena_prepare", self._handle, bytes)

    def wait_until_prepared(self) -> None:
        library.call("troupe_arena_prepared", self._handle)

    def save(
        self, step: int, state: Any, *, generation: int = 0, rank: int = 0, world_size: int = 1
    ) -> None:
        """Returns when the state is copied; it may be changed then.

        Raises CheckpointError if there is not enough memory for it, or all images are being read; what was saved before is
        as it was. Raises what `pickled` raises.
        """
        skeleton = pickled(state)
        for storage in skeleton.storages:
            if storage.device.type != "cpu":
                raise library.CheckpointError(
                    f"a tensor is on {storage.device}: only tensors in main memory can be saved so far"
                )
        places = array("Q", [storage.data_ptr() for storage in skeleton.storages])
        sizes = array("Q", [storage.nbytes() for storage in skeleton.storages])
        what = library.RawImage(step, generation, rank, world_size)
        library.call(
            "troupe_save",
            self._handle,
            ctypes.byref(what),
            skeleton.pickle,
            len(skeleton.pickle),
            places.buffer_info()[0],
            sizes.buffer_info()[0],
            len(skeleton.storages),
        )

    def newest(self) -> Image | None:
        """The newest image that is whole."""
        found = library.RawImage()
        if not library.load().troupe_newest(self._handle, ctypes.byref(found)):
            return None
        return Image(*(getattr(found, name) for name, _ in library.RawImage._fields_))

    def load(self, image: Image, *, weights_only: bool = True, map_location: Any = None) -> Any:
        """The state of an image, without a copy: its tensors are the image's memory, which is theirs from then on.

        `weights_only` and `map_location` as in torch.load. Raises CheckpointError if the image is no more.
        """
        library.call("troupe_lend", self._handle, image.slot)
        return torch.load(
            image.path, mmap=True, weights_only=weights_only, map_location=map_location
        )

    def seal(self, image: Image) -> None:
        """Fills in the image's checksums: from then on it is byte for byte the file that other readers expect."""
        library.call("troupe_seal", self._handle, image.slot)
