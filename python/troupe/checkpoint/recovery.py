"""Where a state comes back from: this process's memory, a peer's, or the disk. All ranks decide alike."""

from __future__ import annotations

import contextlib
import logging
import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from . import library
from .arena import Arena, View, complete_steps
from .files import contents
from .image import Destination, Image
from .library import CheckpointError
from .ranks import Agreement, summary
from .rebuilding import Made, Rebuilding, plan

log = logging.getLogger("troupe.checkpoint")

PIECE = 64 << 20  # bytes that are sent at once
STEPS_LOOKED_AT = 64


def newest_image(held: Mapping[int, Sequence[Made]], replicated: bool) -> Made | None:
    """Of the images that ranks hold, the one that all go on from.

    A replicated state is whole wherever it is. Of what the newest generation made, one that is wherever any of that is
    saves sending it. An image of an earlier generation is nothing then: its node was away, and training went on without it.
    """
    if not replicated:
        return max(set.intersection(*map(set, held.values())), default=None) if held else None
    made = {image for images in held.values() for image in images}
    if not made:
        return None
    newest = max(made)[0]
    of_newest = [{m for m in images if m[0] == newest} for images in held.values()]
    return max(set.intersection(*filter(None, of_newest)), default=max(made))


def newest_step(seen: Mapping[int, Sequence[int]], replicated: bool) -> int | None:
    """Of the complete steps that ranks see, newest first, the newest that all see; all that see any, for a replicated state."""
    seeing = [steps for steps in seen.values() if steps or not replicated]
    if not seeing:
        return None
    common = [step for step in seeing[0] if all(step in steps for steps in seeing)]
    return next(iter(common), seeing[0][0] if replicated else None)


class _Misfit(CheckpointError):
    """A step that is whole and of a world of another size."""


@dataclass
class Recovery:
    """One load. `arena`: where this rank holds its state; none if another of its node does that for it.

    A replicated state is the same at all ranks: a rank that lacks it gets it from a peer. Of any other state each rank has a
    part of its own, which fits only into a world of the same size.
    """

    ranks: Agreement
    arena: Arena | None
    place: str
    shards: int  # of a step; with one the state is replicated
    shard: int | None  # this rank's
    to: Callable[[int], Destination | None]  # where a step's image would be written
    others: View | None = None  # where this rank's node holds pieces of other nodes' images
    disk: bool = True  # whether complete steps at `place` are looked for

    @property
    def replicated(self) -> bool:
        return self.shards == 1

    def newest(self) -> Made | None:
        """Collective. After it every arena holds that image, if there is one."""
        me = self.ranks.me
        mine, moved = self._held()
        numbers = [number for made in mine for number in made]
        numbers += [0] * (2 * library.SLOTS - len(numbers))
        rows = self.ranks.gather([self.arena is not None, bool(moved), len(mine), *numbers])
        held = {
            rank: list(zip(row[3 : 3 + 2 * row[2] : 2], row[4 : 4 + 2 * row[2] : 2], strict=True))
            for rank, row in enumerate(rows)
            if row[0]
        }
        steps = self._complete_steps(held.keys()) if self.disk else {}
        chosen = newest_image(held, self.replicated)
        if not self.replicated and (again := self._rebuilt(chosen, mine, held, steps)):
            return again
        if chosen and not self._outdone(chosen, held, steps):
            source = min(rank for rank, images in held.items() if chosen in images)
            lacking = [rank for rank, images in held.items() if chosen not in images]
            self._share(chosen, mine.get(chosen), source, lacking)
            origin = f"a peer, rank {source}" if me.rank in lacking else "memory"
            log.info("rank %d: step %d comes from %s", me.rank, chosen[1], origin)
            return chosen
        if found := self._from_disk(steps):
            return found
        if self.disk and any(row[1] for row in rows):
            raise CheckpointError(summary(self.ranks.spoken(moved)))
        return None

    def _rebuilt(
        self,
        chosen: Made | None,
        mine: dict[Made, Image],
        held: Mapping[int, Sequence[Made]],
        steps: Mapping[int, Sequence[int]],
    ) -> Made | None:
        """A newer step than `chosen`, where other nodes hold enough of the images that are not there."""
        rebuilding, damaged = Rebuilding(self.ranks, self.arena, self.others, mine), set()
        images, parities = rebuilding.known()
        while what := plan(images, parities, damaged):
            if (chosen and what.made <= chosen) or not what.rebuilt:
                return None  # no copies are needed for it
            if self._outdone(what.made, held, steps):
                return None
            if rebuilding.carry_out(what, self.to):
                me, lost = self.ranks.me, {one.rank for one in what.rebuilt}
                origin = "pieces at other nodes" if me.rank in lost else "memory"
                log.info("rank %d: step %d comes from %s", me.rank, what.made[1], origin)
                return what.made
            damaged.add(what.made)
        return None

    def _held(self) -> tuple[dict[Made, Image], str]:
        """The images that can be of use here, and why others are of none."""
        me, moved = self.ranks.me, ""
        found: dict[Made, Image] = {}
        for image in self.arena.found() if self.arena else []:
            if self.replicated or (image.rank, image.world_size) == (me.rank, me.world_size):
                found.setdefault((image.generation, image.step), image)
            else:
                moved = (
                    f"step {image.step} in memory is of rank {image.rank} of {image.world_size}, "
                    f"and this is rank {me.rank} of {me.world_size}: its shards fit only into a world of {image.world_size}"
                )
        return found, moved

    def _outdone(
        self, chosen: Made, held: Mapping[int, Sequence[Made]], steps: Mapping[int, Sequence[int]]
    ) -> bool:
        """Whether the disk has what was made while a rank was away, whose images are old therefore."""
        if self.replicated or chosen >= max(
            (made for images in held.values() for made in images), default=chosen
        ):
            return False
        step = newest_step(steps, self.replicated)
        return step is not None and step > chosen[1]

    def _share(self, made: Made, image: Image | None, source: int, lacking: list[int]) -> None:
        """From the rank that has the image into the arenas of those that lack it."""
        if not lacking:
            return
        me, unfinished, reason = self.ranks.me, None, ""
        size = self.ranks.gather([image.bytes if image else 0])[source][0]
        if me.rank in lacking and self.arena:
            try:
                unfinished = self.arena.begin(
                    size, made[1], generation=made[0], rank=me.rank, world_size=me.world_size
                )
            except CheckpointError as error:
                reason = str(error)
        with contextlib.ExitStack() as undone:
            if unfinished and self.arena:
                undone.callback(self.arena.abandon, unfinished)
            self.ranks.require(reason)
            memory = None
            if unfinished:
                memory = torch.frombuffer(unfinished.memory, dtype=torch.uint8)
            elif me.rank == source and image:
                # Of one's own, since torch asks for memory that can be written to.
                mapped = mmap.mmap(image.descriptor, size, flags=mmap.MAP_PRIVATE)
                memory = torch.frombuffer(mapped, dtype=torch.uint8)
            self.ranks.send(memory, source, lacking, PIECE)
            undone.pop_all()
        if unfinished and self.arena:
            self.arena.finish(unfinished, self.to(made[1]))

    def _complete_steps(self, holders: Iterable[int]) -> dict[int, list[int]]:
        mine: list[int] = []
        reason = ""
        if self.arena:
            try:
                mine = complete_steps(self.place, STEPS_LOOKED_AT)
            except CheckpointError as error:
                reason = str(error)
        self.ranks.require(reason)
        rows = self.ranks.gather([len(mine), *mine, *[0] * (STEPS_LOOKED_AT - len(mine))])
        return {rank: rows[rank][1 : 1 + rows[rank][0]] for rank in holders}

    def _from_disk(self, steps: dict[int, list[int]]) -> Made | None:
        me = self.ranks.me
        unreadable: list[str] = []
        while (step := newest_step(steps, self.replicated)) is not None:
            image, reason, misfit = None, "", False
            if self.arena and step in steps[me.rank]:
                try:
                    image = self._read(step)
                except CheckpointError as error:
                    reason, misfit = str(error), isinstance(error, _Misfit)
            read = self.ranks.gather([image is not None, image.generation if image else 0, misfit])
            if any(row[2] for row in read):
                raise CheckpointError(summary(self.ranks.spoken(reason)))
            having = [rank for rank in steps if read[rank][0]]
            lacking = [rank for rank in steps if not read[rank][0]]
            if having and (self.replicated or not lacking):
                made = (read[having[0]][1], step)
                self._share(made, image, having[0], lacking)
                if reason:
                    log.warning("rank %d: %s; it comes from rank %d", me.rank, reason, having[0])
                origin = f"disk, read by rank {having[0]}" if me.rank in lacking else "disk"
                log.info("rank %d: step %d at %s comes from %s", me.rank, step, self.place, origin)
                return made
            unreadable += (reasons := self.ranks.spoken(reason))
            log.error(
                "step %d at %s cannot be read, an older one is looked for: %s",
                step,
                self.place,
                summary(reasons),
            )
            for seen in steps.values():
                if step in seen:
                    seen.remove(step)
        if unreadable:
            raise CheckpointError(f"no step at {self.place} can be read: {summary(unreadable)}")
        return None

    def _read(self, step: int) -> Image:
        me, said = self.ranks.me, contents(self.place, step)
        assert self.arena
        if len(said.files) != self.shards or (self.shards > 1 and said.world_size != me.world_size):
            raise _Misfit(
                f"step {step} at {self.place} was saved by {said.world_size} ranks as {counted(said.files)}, "
                f"and this world of {me.world_size} has {self.shards}: shards fit only into a world of the same size"
            )
        number = 0 if self.replicated else self.shard
        if number is None:
            raise CheckpointError(f"step {step} at {self.place} has no shard of rank {me.rank}")
        return self.arena.read_back(
            self.place,
            step,
            said.files[number],
            generation=me.generation,
            rank=me.rank,
            world_size=me.world_size,
        )


def counted(files: Sequence[str]) -> str:
    return f"{len(files)} shard{'s' * (len(files) != 1)}"
