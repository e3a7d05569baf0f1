"""A process's images in memory."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import pickle
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import torch

from . import library
from .contents import Files, HeldFiles
from .devices import PATIENCE, Arrival, Devices, Pinning, is_elsewhere, left_of, module_of
from .files import LINES_BYTES, first_line
from .image import Destination, Image, Place, Unfinished
from .kept_skeleton import Skeletons
from .library import CheckpointError
from .loadable import refused_at_load
from .memory import OF_NODE, OF_OTHERS, VARIABLE, own
from .skeleton import MAIN_MEMORY, Skeleton
from .stripes import Group

if TYPE_CHECKING:
    from typing import Self  # Python 3.11


log = logging.getLogger("troupe.checkpoint")

PATIENCE_AT_EXIT = 60.0  # seconds, with a device that copies

_pinnings: list[Pinning] = []  # memory may be pinned by one when its arena is closed, while others are open


@dataclass
class _Storages:
    """Of a skeleton, for the native library."""

    addresses: array[int]  # in main memory; 0 of those that are elsewhere
    sizes: array[int]  # in bytes
    elsewhere: torch.device | None  # of the first such storage

    @classmethod
    def of(cls, content: Skeleton | Files) -> _Storages:
        if content.located:
            return cls(content.located.addresses, content.located.sizes, None)
        storages = content.storages
        sizes = array("Q", map(methodcaller("nbytes"), storages))
        elsewhere = None
        if set(map(attrgetter("device"), storages)) <= {MAIN_MEMORY}:
            addresses = array("Q", map(methodcaller("data_ptr"), storages))
        else:
            addresses = array("Q", bytes(sizes.itemsize * len(sizes)))
            for i, storage in enumerate(storages):
                if not is_elsewhere(storage):
                    addresses[i] = storage.data_ptr()
                elif sizes[i]:
                    elsewhere = elsewhere or storage.device
        return cls(addresses, sizes, elsewhere)

    @property
    def arguments(self) -> tuple[int, int, int]:
        """For as long as this lives."""
        return self.addresses.buffer_info()[0], self.sizes.buffer_info()[0], len(self.sizes)


class View:
    """What can be seen of an arena: the images of one place. `View.of_this_node(place)`: of local rank 0's, for the other local ranks."""

    def __init__(self, handle: Any):
        self._handle = handle
        self._process = os.getpid()

    @classmethod
    def of_this_node(cls, place: Place) -> View:
        """Raises CheckpointError if `actor-launcher` did not start this process, or it is local rank 0 itself."""
        memory = own(
            OF_NODE, f"this process does not see memory of local rank 0 ({OF_NODE} is not set)"
        )
        return cls(library.call("troupe_arena_view", memory, place.number))

    @classmethod
    def of_others(cls) -> View:
        """Where this node holds pieces of other nodes' images for this local rank (see `plan.view`). Raises CheckpointError if
        there is no such memory, or nothing was ever held there."""
        memory = own(OF_OTHERS, f"this node holds nothing for others ({OF_OTHERS} is not set)")
        return cls(library.call("troupe_arena_view", memory, 0))

    @property
    def handle(self) -> Any:
        """For functions of the native library."""
        return self._handle

    def close(self) -> None:
        """Gives the memory back, but for what loaded tensors still use. Waits for a copy that is under way. In a child that was forked
        nothing happens: it has none of the threads that copy."""
        if self._handle and self._process == os.getpid():
            library.load().troupe_arena_close(self._handle)
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def found(self) -> list[Image]:
        """The images that are whole, newest first."""
        raw = (library.RawImage * library.SLOTS)()
        count = library.load().troupe_images(self._handle, raw)
        return [Image.of(one) for one in raw[:count]]

    def newest(self) -> Image | None:
        """The newest image that is whole."""
        return next(iter(self.found()), None)

    def of_other_places(self) -> list[tuple[int, str]]:
        """Of each other place that has images there: the newest one's step, and what people call the place."""
        lines = ctypes.create_string_buffer(LINES_BYTES)
        library.call("troupe_images_of_others", self._handle, lines, LINES_BYTES)
        found = [line.split("\t") for line in os.fsdecode(lines.value).splitlines()]
        return [(int(step), name) for step, name in found]

    def load(self, image: Image, *, weights_only: bool = True, map_location: Any = None) -> Any:
        """The state of an image, without a copy: its tensors are the image's memory, which is theirs as long as one of them lives,
        here or in a process forked from this one. Then a save may use it again.

        `weights_only` and `map_location` as in torch.load. Raises CheckpointError if the image is no more, or torch.load refuses
        what is in it.
        """
        with self.mapped(image):
            try:
                return torch.load(
                    image.path, mmap=True, weights_only=weights_only, map_location=map_location
                )
            except pickle.UnpicklingError as error:
                why = refused_at_load(image.path, error)
                raise CheckpointError(f"step {image.step} cannot be loaded: {why}") from error

    def files(self, image: Image) -> HeldFiles:
        """The files of an image that has several, without a copy. Raises CheckpointError if the image is no more."""
        return HeldFiles(image, lambda: self.mapped(image))

    @contextlib.contextmanager
    def mapped(self, image: Image) -> Iterator[None]:
        """While torch maps it, or other ranks get it from here: no save takes its place. Torch lets the kernel choose where it maps
        it, which would not be where it maps huge pages. Raises CheckpointError if the image is no more."""
        mapping = library.call("troupe_open_for_mapping", self._handle, image.slot, image.sequence)
        try:
            yield
        finally:
            library.load().troupe_end_mapping(mapping)


class Arena(View):
    """Memory for the newest images of this process's state, at least two: a save never overwrites the newest one.

    `images`: how many at once, 2 to 4; one, if memory does not suffice for two (see `images`). `threads` copy; 0: as many
    as this process may run on, at most 8. `memory`: what `memory.own` gives, shared with other arenas; else `left` are the
    `descriptors` of an arena whose process has ended: its images are this one's then, and so are the descriptors. With `copy_on_write` a save returns as soon as the state's memory is protected,
    and it is copied behind that; a write to a part that is not copied yet waits until that part is. Raises
    CheckpointError where the system does not let a process do that. One thread of the program at a time may use an arena.

    Tensors of other devices are copied behind the call: what their device is told to do after it waits for that. Those that
    one of `optimizers` alone changes are waited for only by its next step.
    """

    def __init__(
        self,
        images: int = 2,
        threads: int = 0,
        *,
        left: Sequence[int] | None = None,
        memory: Any = None,
        place: Place = Place(0, ""),  # noqa: B008 (it is frozen)
        copy_on_write: bool = False,
        optimizers: Sequence[torch.optim.Optimizer] = (),
    ):
        self._skeletons = Skeletons()
        self._pending: Skeleton | Files | None = None  # whose storages are being copied
        self._copy_on_write = copy_on_write
        self._last_file_awaited = False
        self._arrival: Arrival | None = None  # of what devices copy
        self._pinning_is_chosen = False
        inherited = library.call("troupe_memory_open", library.Descriptors(*left)) if left else None
        try:
            super().__init__(
                library.call(
                    *("troupe_arena_open", images, threads, memory or inherited),
                    *(place.number, os.fsencode(place.name)),
                )
            )
        finally:
            if inherited:
                library.load().troupe_memory_close(inherited)
        if copy_on_write:
            try:
                library.call("troupe_arena_copy_on_write", self._handle)
            except CheckpointError:
                super().close()
                raise
        self._devices = Devices(optimizers)
        self._library, self._line = library.load(), ctypes.create_string_buffer(library.WHY_BYTES)

    @classmethod
    def of_this_worker(
        cls,
        images: int = 2,
        threads: int = 0,
        *,
        place: Place = Place(0, ""),  # noqa: B008
        copy_on_write: bool = False,
        agreed: bool = False,
        optimizers: Sequence[torch.optim.Optimizer] = (),
    ) -> Arena:
        """An arena in the memory that `actor-launcher` keeps for this local rank, with what an earlier process of it has saved of this
        place. A process may open any number of them.

        `agreed`: this process, too, agrees with others on what it saves (see `agree`); else it does not matter any more what
        an earlier one agreed on.

        The memory outlives this process and its node supervisor, and is gone with the launcher. Raises CheckpointError if there is
        none.
        """
        memory = own(
            VARIABLE,
            f"this process has no memory that outlives it ({VARIABLE} is not set): it was not started by actor-launcher, "
            "or its local rank is beyond 63",
        )
        arena = cls(
            images,
            threads,
            memory=memory,
            place=place,
            copy_on_write=copy_on_write,
            optimizers=optimizers,
        )
        if not agreed:
            library.load().troupe_set_rollback_point(arena.handle, 0)
        return arena

    def close(self, within: float = PATIENCE) -> None:
        """As a view's. Raises CheckpointError, and closes nothing, if a device has not copied the last save `within` seconds."""
        if self._process != os.getpid():
            return
        if self._arrival:
            self._arrival.wait(within)
        self._devices.close()
        atexit.unregister(self.close)
        super().close()
        self._pending = self._arrival = None

    @property
    def images(self) -> int:
        """How many images are kept, the same at all ranks of a node; 0 before the first save. With 1, a process that dies while
        it saves has none."""
        return library.load().troupe_arena_images(self._handle)

    @property
    def descriptors(self) -> list[int]:
        """Of the arena's memory. A process that inherits them holds it, whatever becomes of this one."""
        found = library.Descriptors()
        library.load().troupe_arena_descriptors(self._handle, found)
        return list(found)

    def take_unknown(self) -> bytes:
        """See `Skeletons.take_unknown`."""
        return self._skeletons.take_unknown()

    def prepare(self, state: Any) -> None:
        """Makes memory for states like this one, in the background: without it the first save takes some times longer.

        With copy-on-write it also moves the state's own memory to huge pages, where the system has some, without which
        protecting it takes about a sixth of the time that copying it does. For tensors of devices it also makes the memory
        known to their driver. And the state's structure is remembered: the first save is as one of a structure that has not changed.
        """
        self._require_own()
        skeleton = self._skeletons.prepare(state)
        storages = _Storages.of(skeleton)
        self._pin_for(storages.elsewhere)
        more = len(skeleton.pickle) + 4096 + 512 * len(skeleton.storages)  # headers and directory
        library.call("troupe_arena_prepare", self._handle, more, *storages.arguments)
        self._tell()

    def wait_until_prepared(self) -> None:
        library.call("troupe_arena_prepared", self._handle)

    def save(
        self,
        step: int,
        state: Any,
        *,
        generation: int = 0,
        save: int = 0,
        rank: int = 0,
        world_size: int = 1,
        to: Destination | None = None,
        wanted: bool = False,
    ) -> bool:
        """Returns when the state may be changed: when it is copied, or with copy-on-write or on devices earlier. What is kept is
        the state at the moment of the call. Waits for the copy before it. `state`: anything that torch.save takes; `Files` for
        files of other kinds, or several. `to`: where the image is written, if that is ever wanted; `wanted`: it is as soon as it
        is whole, if that is behind the call. Returns whether it is.

        Raises CheckpointError if there is not enough memory for it, or all images are being read, or a tensor has no data; what
        was saved before is as it was. Raises what `pickled` raises.
        """
        self._require_own()
        content = state if isinstance(state, Files) else self._skeletons.of(state)
        storages = _Storages.of(content)
        self._without_last_file()
        self.wait()  # before the last state's storages may go
        self._pin_for(storages.elsewhere)
        self._last_file_awaited = isinstance(content, Files) and content.last_file_room > 0
        behind = self._copy_on_write or storages.elsewhere is not None or self._last_file_awaited
        what = library.RawImage(step, generation, save, rank, world_size)
        places = (ctypes.c_uint64 * len(storages.sizes))()
        left = library.RawLeft(places)
        self._pending = content
        where = (self._handle, ctypes.byref(what), to.raw() if to else None, wanted and behind)
        if isinstance(content, Files):
            files, file_count, parts, part_count = content.raw()
            library.call(
                *("troupe_save_files", *where, files, file_count, parts, part_count),
                *(*storages.arguments, content.last_file_room, ctypes.byref(left)),
            )
            content.placed(parts)
        else:
            library.call(
                *("troupe_save", *where, content.pickle, len(content.pickle)),
                *(*storages.arguments, ctypes.byref(left)),
            )
        self._fill(content, places, left.pinned_end)
        self._tell()
        return behind

    def _require_own(self) -> None:
        if self._process != os.getpid():
            raise CheckpointError(
                f"process {self._process} has opened this memory, and this is a child that was forked: it has to open its own"
            )

    def last_file(self, name: str, content: bytes) -> None:
        """The file for which the last save has kept room. Raises CheckpointError, and that save is lost, if it is larger, or its
        name is another's; and if no save waits for one."""
        self._last_file_awaited = False
        library.call(
            *("troupe_last_file", self._handle, name.encode(errors="surrogateescape")),
            *(content, len(content)),
        )

    def _without_last_file(self) -> None:
        if self._last_file_awaited:
            self._last_file_awaited = False
            why = b"its last file was never given"
            library.load().troupe_no_last_file(self._handle, why)

    def _tell(self) -> None:
        """What the ranks of this node keep, if that has changed and no other process of the node has told it."""
        if self._library.troupe_arena_notice(self._handle, self._line, library.WHY_BYTES):
            log.warning("%s", self._line.value.decode(errors="replace"))

    def _pin_for(self, device: torch.device | None) -> None:
        """Once for an arena, when it first sees a tensor of a device."""
        if self._pinning_is_chosen or device is None:
            return
        module_of(device)
        self._pinning_is_chosen = True
        # No driver copies, nor is asked, when the interpreter has gone.
        atexit.register(self.close, PATIENCE_AT_EXIT)
        if pinning := Pinning.of(device):
            library.call("troupe_arena_pin_by", self._handle, pinning.pin, pinning.unpin)
            _pinnings.append(pinning)

    def _fill(self, content: Skeleton | Files, places: ctypes.Array, pinned_end: int) -> None:
        """Has devices copy to the places that were left."""
        left = left_of(content.storages, places)
        if not left:
            return
        try:
            ends = self._devices.begin(left, pinned_end)
        except Exception as error:
            self._filled(f"copying from a device could not begin: {first_line(error)}")
            self.wait()  # and raises that
        else:
            self._arrival = Arrival(ends, self._filled)

    def _filled(self, why_not: str) -> None:
        """By any thread."""
        library.load().troupe_filled(self._handle, why_not.encode() if why_not else None)

    def wait(self) -> None:
        """Until the last save is copied. Raises CheckpointError if that failed."""
        if self._arrival:
            self._arrival.wait()
        self._arrival = None
        library.call("troupe_saved", self._handle)
        self._pending = None

    def want(self, image: Image) -> None:
        """The image is to be written where its `save` said; it stays as it is until that is finalized."""
        library.call("troupe_request_persist", self._handle, image.slot)

    def agree(self, image: Image) -> None:
        """The rollback point: all ranks have an image of this one's step. It stays until they agree on another, and is what is
        written at a breakpoint."""
        library.load().troupe_set_rollback_point(self._handle, image.sequence)

    def settled(self, image: Image, within: float) -> bool:
        """Whether an image whose writing was requested belongs to a complete step; False: not known yet, after `within` seconds.

        Raises CheckpointError if its step was given up, with the reason.
        """
        waited = round(within * 1000)
        return library.call("troupe_finalized", self._handle, image.slot, image.sequence, waited) == 1

    def want_copies(self, by: Group, image: Image | None = None) -> int:
        """Pieces of an image are to be held by a group; it stays as it is until that is finalized. Without an image: of the last
        save, be it whole yet or not. Returns its slot.

        Raises CheckpointError if there is none, or copies of it are being made already.
        """
        slot = ctypes.c_uint64(library.LAST_SAVE if image is None else image.slot)
        library.call("troupe_request_copies", self._handle, ctypes.byref(slot), by.raw())
        return slot.value

    def copies_settled(self, image: Image, within: float) -> bool:
        """Whether its group holds the image's pieces; False: not known yet, after `within` seconds.

        Raises CheckpointError if it does not, with the reason.
        """
        waited = round(within * 1000)
        done = library.call(
            "troupe_copies_finalized", self._handle, image.slot, image.sequence, waited
        )
        return done == 1

    def keep_for_others(self, image: Image | None) -> None:
        """The replica base: from now on this image stays, since other ranks go on from its step if they must; the one
        before it need not.

        Raises CheckpointError if it is no more, or where memory suffices for one image only.
        """
        library.call("troupe_set_replica_base", self._handle, image.sequence if image else 0)

    def begin(
        self,
        size: int,
        step: int,
        *,
        generation: int = 0,
        save: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> Unfinished:
        """Memory for an image of `size` bytes that comes from elsewhere, until `finish` or `abandon`.

        Raises CheckpointError as `save` does.
        """
        self._require_own()
        raw = library.RawImage(step, generation, save, rank, world_size, size)
        memory = ctypes.c_void_p()
        library.call("troupe_begin", self._handle, size, ctypes.byref(raw), ctypes.byref(memory))
        self._tell()
        return Unfinished(raw, memory.value or 0)

    def finish(self, image: Unfinished, to: Destination | None = None) -> None:
        """Its memory is filled: it is the newest image. `to` as for `save`."""
        raw = to.raw() if to else None
        library.call("troupe_finish", self._handle, ctypes.byref(image.raw), raw)

    def abandon(self, image: Unfinished) -> None:
        library.load().troupe_abandon(self._handle, image.raw.slot)

    def seal(self, image: Image) -> None:
        """Fills in the image's checksums: from then on it is byte for byte the file that other readers expect."""
        library.call("troupe_seal", self._handle, image.slot)


def complete_steps(place: str, most: int = 64) -> list[int]:
    """The complete steps at a place, newest first; of a place that does not exist, none.

    Newest is what was completed last, which is not the highest number if training went back. Raises CheckpointError for a
    place that cannot be read.
    """
    steps = (ctypes.c_uint64 * most)()
    count = library.call("troupe_complete_steps", os.fsencode(place), steps, most)
    return list(steps[:count])
