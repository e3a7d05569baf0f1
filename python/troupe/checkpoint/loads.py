"""What a checkpointer reads back: a state, or the files of a step, of this world or another."""

from __future__ import annotations

import contextlib
import os
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .arena import Arena, View
from .image import Destination, Image
from .library import CheckpointError
from .plan import StateId
from .ranks import Agreement
from .recovery import OtherWorld, Recovery, is_part

Read = TypeVar("Read")


@dataclass(frozen=True)
class FoundFiles:
    """`files`: those that this rank has of the step, by name. If a world of another size has saved it, all ranks together have all
    of them, each at one rank; or they are on the disk, and none is here: then `directory` is where."""

    step: int
    world_size: int  # that saved it
    files: Mapping[str, memoryview]
    directory: str = ""


@dataclass
class Loads:
    """`arena`, or else `view`: where this rank finds its state; without either no other process holds it for this rank. `to`:
    where the image of a step is written. Each method is collective."""

    ranks: Agreement
    arena: Arena | None
    view: View | None
    others: View | None  # where this rank's node holds pieces of other nodes' images
    place: str
    shards: int
    shard: int | None
    to: Callable[[int], Destination | None]
    passed_over: Callable[[StateId, bool], None]  # as Recovery's

    def newest(self, disk: bool, read: Callable[[View, Image], Read]) -> tuple[Image, Read] | None:
        """The newest image, and what `read` makes of it. `disk`: whether complete steps at the place are looked for."""
        with self._looking(disk) as looking:
            made = looking.newest()
            return self._read(looking, made, read) if made else None

    def files_of_any_world(self, disk: bool) -> tuple[Image | None, FoundFiles] | None:
        """With the image, if it is of this world."""
        with self._looking(disk) as looking:
            made = looking.newest_of_any_world()
            if made is None:
                return None
            if isinstance(made, OtherWorld):
                return None, self._of_another_world(looking, made)
            image, files = self._read(looking, made, View.files)
            return image, FoundFiles(image.step, image.world_size, files)

    @contextlib.contextmanager
    def _looking(self, disk: bool) -> Iterator[Recovery]:
        arena, own = self.arena, None
        if not arena and not self.view:
            arena = own = Arena()
        try:
            yield Recovery(
                self.ranks, arena, self.place, self.shards, self.shard, self.to, self.passed_over, self.others, disk
            )
        finally:
            if own:
                own.close()

    def _read(
        self, looking: Recovery, made: StateId, read: Callable[[View, Image], Read]
    ) -> tuple[Image, Read]:
        # The ranks that only look come after those that hold it.
        self.ranks.gather([0])
        seen = looking.arena or self.view
        assert seen
        me = self.ranks.me
        part = me.rank if looking.arena else me.rank - me.local_rank  # a view is of local rank 0's
        for image in seen.found():
            if is_part(image, made, None if self.shards == 1 else part):
                return image, read(seen, image)
        raise CheckpointError(f"rank {me.rank}: step {made.step} is not in memory any more")

    def _of_another_world(self, looking: Recovery, made: OtherWorld) -> FoundFiles:
        mine = [part.of for part in made.parts if part.at == self.ranks.me.rank]
        held = []
        for image in looking.arena.found() if looking.arena and made.what else []:
            if image.world_size == made.world_size and image.rank in mine and is_part(image, made.what, image.rank):
                held.append(looking.arena.files(image))
                mine.remove(image.rank)
        reason = f"step {made.step} is not in memory any more" if mine else ""
        self.ranks.require(reason)
        directory = ""
        if not made.parts and (to := self.to(made.step)):
            directory = os.path.join(to.place, to.directory)
        return FoundFiles(made.step, made.world_size, ChainMap(*held), directory)
