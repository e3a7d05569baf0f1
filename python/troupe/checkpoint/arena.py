"""A process's images in memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import library
from .skeleton import Skeleton, pickled


VARIABLE = "TROUPE_CHECKPOINT_MEMORY"  # set by actor-launcher


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


def _storages(skeleton: Skeleton) -> tuple[ctypes.Array, ctypes.Array, int]:
    """Where they are, their sizes in bytes, and how many there are."""
    count = len(skeleton.storages)
    numbers = ctypes.c_uint64 * count
    return (
        numbers(*[storage.data_ptr() for storage in skeleton.storages]),
        numbers(*[storage.nbytes() for storage in skeleton.storages]),
        count,
    )


class Arena:
    """Memory for the newest images of this process's state, at least two: a save never overwrites the newest one.

    `images`: how many at once, 2 to 4; one, if memory does not suffice for two (see `images`). `threads` copy; 0: as many
    as this process may run on, at most 8. `left` are the `descriptors` of an arena whose process has ended: its images are
    this one's then, and so are the descriptors. With `copy_on_write` a save returns as soon as the state's memory is protected,
    and it is copied behind that; whoever writes to a part that is not copied yet waits for that part. Raises
    CheckpointError where the system does not let a process do that. One thread of the program at a time may use an arena.
    """

    def __init__(
        self,
        images: int = 2,
        threads: int = 0,
        *,
        left: Sequence[int] | None = None,
        copy_on_write: bool = False,
    ):
        self._pending: Skeleton | None = None  # whose storages are being copied
        self._handle = library.call(
            "troupe_arena_open", images, threads, library.Descriptors(*left) if left else None
        )
        if copy_on_write:
            try:
                library.call("troupe_arena_copy_on_write", self._handle)
            except library.CheckpointError:
                self.close()
                raise

    @classmethod
    def of_this_worker(cls, images: int = 2, threads: int = 0, *, copy_on_write: bool = False) -> Arena:
        """The arena that `actor-launcher` keeps for this local rank, with what an earlier process of it has saved there.

        It outlives this process and its node supervisor, and is gone with the launcher. Raises CheckpointError if there is
        none, or if it was opened before.
        """
        left = os.environ.pop(VARIABLE, None)
        if left is None:
            raise library.CheckpointError(
                f"this process has no memory that outlives it ({VARIABLE} is not set): it was not started by actor-launcher, "
                "or its local rank is beyond 63, or it has opened that memory before"
            )
        descriptors = [int(number) for number in left.split(",")]
        for descriptor in descriptors:  # before any of them is taken for ours
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}").startswith("/memfd:troupe-ckpt"):
                    continue
            raise library.CheckpointError(
                f"{VARIABLE} is another process's: {descriptor} is not the memory that it speaks of"
            )
        return cls(images, threads, left=descriptors, copy_on_write=copy_on_write)

    def close(self) -> None:
        """Gives the memory back, but for what loaded tensors still use. Waits for a copy that is under way."""
        if self._handle:
            library.load().troupe_arena_close(self._handle)
        self._handle = None
        self._pending = None

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def images(self) -> int:
        """How many images are kept; 0 before the first save. With 1, a process that dies while it saves has none."""
        return library.load().troupe_arena_images(self._handle)

    @property
    def descriptors(self) -> list[int]:
        """Of the arena's memory. A process that inherits them holds it, whatever becomes of this one."""
        found = library.Descriptors()
        library.load().troupe_arena_descriptors(self._handle, found)
        return list(found)

    def prepare(self, state: Any) -> None:
        """Makes memory for states like this one, in the background: without it the first save takes some times longer.

        With copy-on-write it also moves the state's own memory to huge pages, where the system has some, without which
        protecting it takes about a sixth of the time that copying it does.
        """
        skeleton = pickled(state)
        more = len(skeleton.pickle) + 4096 + 512 * len(skeleton.storages)  # headers and directory
        library.call("troupe_arena_prepare", self._handle, more, *_storages(skeleton))

    def wait_until_prepared(self) -> None:
        library.call("troupe_arena_prepared", self._handle)

    def save(
        self, step: int, state: Any, *, generation: int = 0, rank: int = 0, world_size: int = 1
    ) -> None:
        """Returns when the state may be changed: when it is copied, or with copy-on-write earlier. What is kept is the state
        at the moment of the call. Waits for the copy before it.

        Raises CheckpointError if there is not enough memory for it, or all images are being read; what was saved before is
        as it was. Raises what `pickled` raises.
        """
        skeleton = pickled(state)
        for storage in skeleton.storages:
            if storage.device.type != "cpu":
                raise library.CheckpointError(
                    f"a tensor is on {storage.device}: only tensors in main memory can be saved so far"
                )
        what = library.RawImage(step, generation, rank, world_size)
        self.wait()  # before the last state's storages may go
        self._pending = skeleton
        library.call(
            "troupe_save",
            self._handle,
            ctypes.byref(what),
            skeleton.pickle,
            len(skeleton.pickle),
            *_storages(skeleton),
        )

    def wait(self) -> None:
        """Until the last save is copied. Raises CheckpointError if that failed."""
        library.call("troupe_saved", self._handle)
        self._pending = None

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
