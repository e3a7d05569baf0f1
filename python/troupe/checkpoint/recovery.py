"""Where a state comes back from: this process's memory, a peer's, other nodes' pieces, or the disk. All ranks decide alike."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from . import library
from .arena import Arena, View
from .files import foreign_steps, names_of_people, steps_passed_over
from .image import Destination, Image, Unfinished
from .library import CheckpointError
from .moving import move
from .plan import Failed, Outcome, Part, Plan, Source, StateId, plan, view
from .progress import since_failure, tell
from .ranks import Agreement, summary
from .rebuilding import rebuild
from .stripes import crc32

log = logging.getLogger("troupe.checkpoint")

PIECE = 64 << 20  # bytes that are sent at once
STEPS_LISTED = 64  # of a directory, at first; eight times as many where that is not enough
REST = 0.2  # seconds, between two looks
ROOM_WITHIN = 60.0  # seconds, in which images that are still being written make room
ROUNDS = 200

_NONE, _BYTES, _LACKS = range(3)  # what is damaged of a shard


def _damage_of(error: CheckpointError) -> int:
    return _BYTES if isinstance(error, library.DamagedShard) else _LACKS if isinstance(error, library.LackingShard) else _NONE


@dataclass(frozen=True)
class OtherWorld:
    """A state that was saved by a world of another size, or as another number of shards."""

    what: StateId | None  # None: it is on the disk
    step: int
    world_size: int
    parts: list[Part]  # by shard; none: it is on the disk


@dataclass
class Recovery:
    """One load. `arena`: where this rank holds its state; none if another of its node does that for it.

    A replicated state is the same at all ranks: a rank that lacks it gets it from a peer. Of any other state each rank has a
    part of its own, which fits only into a world of the same size, and goes to whichever node has that rank now.
    """

    ranks: Agreement
    arena: Arena | None
    place: str
    shards: int  # of a step; with one the state is replicated
    shard: int | None  # this rank's
    to: Callable[[int], Destination | None]  # where a step's image would be written
    passed_over: Callable[[StateId, bool], None]  # is told of complete steps that are damaged, and whether files are missing or cut
    others: View | None = None  # where this rank's node holds pieces of other nodes' images
    disk: bool = True  # whether complete steps at `place` are looked for
    _failed: list[Failed] = field(default_factory=list)
    _unreadable: list[str] = field(default_factory=list)
    _no_room: list[str] = field(default_factory=list)  # for parts that lie with other ranks
    _read_from_disk: set[StateId] = field(default_factory=set)
    _origin: str = "memory"

    def newest(self) -> StateId | None:
        """Collective. After it every arena holds the image of that state, if there is one."""
        found = self._search(any_world=False)
        assert not isinstance(found, OtherWorld)
        return found

    def newest_of_any_world(self) -> StateId | OtherWorld | None:
        """The same, but that the newest state may be one that a world of another size has saved. Then nothing is moved."""
        return self._search(any_world=True)

    def _search(self, any_world: bool) -> StateId | OtherWorld | None:
        seen_before, listed = None, STEPS_LISTED
        for _ in range(ROUNDS):
            what = self._planned(listed, seen_before, any_world)
            seen_before = what.newest_seen
            if what.outcome is Outcome.LOOK_AGAIN:
                time.sleep(REST)
            elif what.outcome is Outcome.LOOK_DEEPER:
                listed *= 8
            elif what.outcome is Outcome.RESHARD or (any_world and what.outcome is Outcome.MISFIT):
                return self._of_another_world(what)
            elif what.outcome is Outcome.MISFIT:
                raise CheckpointError(self._misfit(*what.misfit))
            elif what.outcome is Outcome.NOTHING:
                return self._nothing(what, any_world)
            elif what.done:
                self._tell(what.what.step)
                self._tell_of_passed_over(what.what)
                return what.what
            else:
                self._carry_out(what)
        raise CheckpointError(f"what is newest at {self.place} changed {ROUNDS} times during a load")

    # ---- What there is ----

    def _planned(self, listed: int, seen_before: StateId | None, any_world: bool) -> Plan:
        place = self.place if self.disk and self.arena else None
        mine: list[int] = []
        reason = ""
        try:
            mine = view(self.arena, self.others, place, listed, self.ranks.me, self.shards)
        except CheckpointError as error:
            reason = str(error)
        lengths = [row[0] for row in self.ranks.gather([0 if reason else len(mine)])]
        if not all(lengths):
            raise CheckpointError(summary(self.ranks.spoken(reason)))
        rows = self.ranks.gather([*mine, *[0] * (max(lengths) - len(mine))])
        views = [row[:length] for row, length in zip(rows, lengths, strict=True)]
        return plan(views, self.shards, seen_before, self._failed, any_world)

    def _of_another_world(self, what: Plan) -> OtherWorld:
        world_size, _, step = what.misfit
        self._origin = "memory" if what.parts else "disk"
        self._tell(step, f" of a world of {world_size}")
        if what.parts:
            self._tell_of_passed_over(what.what)
        return OtherWorld(what.what if what.parts else None, step, world_size, what.parts)

    def _nothing(self, what: Plan, any_world: bool) -> None:
        if self._no_room:
            raise CheckpointError(summary(self._no_room))
        lost, told = self._passed_over(None)
        if unreadable := self._unreadable or lost:
            raise library.UnreadableSteps(
                f"no step at {self.place} can be read: {summary(unreadable)}; bring one back, or begin anew in another directory"
            )
        moved = self._moved() if self.disk else ""
        if reasons := self.ranks.objections(moved):
            if not any_world:
                raise CheckpointError(f"{summary(reasons)}: its shards fit only into a world of that size")
            if self.ranks.me.rank == 0:
                log.error(
                    "%s. Not all shards of that world are in memory, and none are at %s. Training begins anew",
                    summary(reasons), self.place,
                )  # fmt: skip
        if self.disk and self.arena and self.ranks.me.rank == 0:
            if what.lost:
                log.error(
                    "step %d is lost: rank %d's shard of it is in no memory and not at %s. Training begins anew",
                    what.lost[0].step, what.lost[1], self.place,
                )  # fmt: skip
            if not self._tell_of_foreign() and told:
                log.warning("%s: training begins anew, and these were passed over: %s", self.place, summary(told))
            self._tell_of_other_places()

    def _moved(self) -> str:
        """Why what is in memory is of no use."""
        me = self.ranks.me
        image = self.arena.newest() if self.arena else None
        if not image or self.replicated or image.world_size == me.world_size:
            return ""
        return (
            f"step {image.step} in memory is of rank {image.rank} of {image.world_size}, "
            f"and this is rank {me.rank} of {me.world_size}"
        )

    def _misfit(self, world_size: int, shards: int, step: int) -> str:
        return (
            f"step {step} at {self.place} was saved by {world_size} ranks as {counted(shards)}, and this world of "
            f"{self.ranks.me.world_size} has {self.shards}: shards fit only into a world of the same size"
        )

    def _passed_over(self, what: StateId | None) -> tuple[list[str], list[str]]:
        """Collective. Why newer steps than this at the ranks' places are no checkpoints to go on from: of those that were complete once,
        and of others."""
        found: list[tuple[str, bool]] = []
        if self.disk and self.arena and self.ranks.me.local_rank == 0:  # its node's others see the same
            than = library.RawImage(what.step, what.generation, what.save) if what else None
            try:
                found = steps_passed_over(self.place, than)
            except CheckpointError as error:
                found = [(str(error), True)]
        kinds = [summary([text for text, was in found if was is kind]) for kind in (True, False)]
        flags = self.ranks.gather([bool(text) for text in kinds])
        lost, told = (
            self.ranks.spoken(text) if any(row[kind] for row in flags) else [] for kind, text in enumerate(kinds)
        )
        return lost, told

    def _tell_of_passed_over(self, what: StateId) -> None:
        lost, told = self._passed_over(what)
        if self.ranks.me.rank:
            return
        if lost:
            log.error(
                "%s: training goes on from step %d, and other steps there were passed over: %s. Each stays as it is until training saves it again",
                self.place, what.step, summary(lost),
            )  # fmt: skip
        if told:
            log.warning(
                "%s: training goes on from step %d; what is later there is no complete step: %s", self.place, what.step, summary(told)
            )

    def _tell_of_other_places(self) -> None:
        """Where a script has several directories that is as it should be, and where it has got another name it is not."""
        for step, name in self.arena.of_other_places() if self.arena else []:
            log.info(
                "%s: training begins anew; step %d in memory is of %s, and is not loaded here",
                self.place, step, name or "another place",
            )  # fmt: skip

    def _tell_of_foreign(self) -> bool:
        """Other tools' checkpoints are not passed over without a word. Whether there are any."""
        for directory, step, tracker in foreign_steps(self.place):
            log.warning(
                "%s: %s names step %s in %s, which Troupe has not written. It is not loaded by itself, and stays as it is: "
                "load_checkpoint(resume_path) begins with a file of it. Training begins anew",
                self.place, tracker, step, directory,
            )  # fmt: skip
            return True
        names = names_of_people(self.place)
        if names:
            log.warning(
                "%s holds %s, which Troupe has not written. It is not loaded by itself, and stays as it is: "
                "load_checkpoint(resume_path) begins with a file. Training begins anew",
                self.place, summary(names),
            )  # fmt: skip
        return bool(names)

    @property
    def replicated(self) -> bool:
        return self.shards == 1

    # ---- How all ranks get it ----

    def _carry_out(self, what: Plan) -> None:
        source = what.sources[self.ranks.me.rank]
        reason, damage = "", _NONE
        with self._staying(what):
            if Source.DISK in what.sources:
                self._read_from_disk.add(what.what)
                reason, damage = self._read(what.what, source is Source.DISK)
            if what.moves:
                reason = self._move(what) or reason
            elif Source.PEER in what.sources:
                reason = self._share(what, source is Source.PEER) or reason
            if what.rebuilt:
                reason = self._rebuild(what) or reason
        rows = self.ranks.gather([bool(reason), damage])
        failed = [rank for rank, row in enumerate(rows) if row[0]]
        if not failed:
            return
        if worst := max(row[1] for row in rows):
            self.passed_over(what.what, worst == _LACKS)
        reasons = self.ranks.spoken(reason)
        log.error(
            "step %d was not to be had; another source of it or an older step is looked for: %s",
            what.what.step,
            summary(reasons),
        )
        for rank in failed:
            self._failed.append(Failed(rank, what.sources[rank], what.what))
        if Source.DISK in (what.sources[rank] for rank in failed):
            self._unreadable += reasons

    @contextlib.contextmanager
    def _staying(self, what: Plan) -> Iterator[None]:
        """What this rank is to send stays until it has: what it gets itself would take the place of an older image."""
        me, sent = self.ranks.me.rank, set()
        sent |= {one.to for one in what.moves if one.source == me}
        sent |= {t.of for t in what.transfers if t.source == me and t.parity is None}
        with contextlib.ExitStack() as staying:
            for rank in sent:
                if (image := self._image(what.what, rank)) and self.arena:
                    staying.enter_context(self.arena.mapped(image))
            yield

    def _move(self, what: Plan) -> str:
        coming = next((one for one in what.moves if one.to == self.ranks.me.rank), None)
        with contextlib.ExitStack() as undone:
            into, reason = None, ""
            try:
                if coming and self.arena:
                    into = self._begin(what.what, coming.bytes)
                    undone.callback(self.arena.abandon, into)
            except CheckpointError as error:
                reason = str(error)
            # Each has to have room, since a rank that has none would keep the others waiting. The disk may need less.
            if full := self.ranks.objections(reason):
                self._no_room = full
                return reason or ("other ranks have no room for theirs" if coming else "")
            if damaged := move(self.ranks, what, partial(self._image, what.what), into):
                return damaged
            undone.pop_all()
        if into and coming and self.arena:
            self.arena.finish(into, self.to(what.what.step))
            self._origin = f"a peer, rank {coming.source}"
        return ""

    def _read(self, what: StateId, mine: bool) -> tuple[str, int]:
        """All ranks call it, those that read their shard into their arena and the others. Returns why it could not be read, and what is
        damaged.

        Raises CheckpointError at all ranks if one has no memory for it: that says nothing of the step.
        """
        number = 0 if self.replicated else self.shard
        said = library.RawImage(what.step, what.generation, what.save)
        place, reason, full, into, damage = os.fsencode(self.place), "", "", None, _NONE
        if mine and self.arena and number is not None:
            try:
                library.call("troupe_shard_bytes", place, said, number)
            except CheckpointError as error:
                reason, damage = str(error), _damage_of(error)
            else:
                try:
                    into = self._begin(what, said.bytes)
                except CheckpointError as error:
                    full = str(error)
        elif mine:
            reason = f"step {what.step} at {self.place} has no shard of rank {self.ranks.me.rank}"
        with contextlib.ExitStack() as undone:
            if into and self.arena:
                undone.callback(self.arena.abandon, into)
            self.ranks.require(full)
            if into and self.arena:
                try:
                    library.call("troupe_read_shard", place, said, number, into.address)
                except CheckpointError as error:
                    return str(error), _damage_of(error)
            undone.pop_all()
        if into and self.arena:
            self.arena.finish(into)
            self._origin = "disk"
        return reason, damage

    def _share(self, what: Plan, lacks: bool) -> str:
        """From the rank that has the image into the arenas of those that lack it. Returns why what came is not that."""
        me = self.ranks.me
        mine = self._image(what.what, me.rank)
        lacking = [rank for rank, source in enumerate(what.sources) if source is Source.PEER]
        sends = me.rank == what.sender
        size = self.ranks.gather([mine.bytes if mine and sends else 0])[what.sender][0]
        with contextlib.ExitStack() as undone:
            reason, into, memory = "", None, None
            try:
                if lacks and self.arena:
                    into = self._begin(what.what, size)
                    undone.callback(self.arena.abandon, into)
                    memory = torch.frombuffer(into.memory, dtype=torch.uint8)
                elif sends and mine:
                    # Of one's own, since torch asks for memory that can be written to.
                    mapped = mmap.mmap(mine.descriptor, size, flags=mmap.MAP_PRIVATE)
                    memory = torch.frombuffer(mapped, dtype=torch.uint8)
                elif sends:
                    reason = f"step {what.what.step} is not in memory any more"
            except (CheckpointError, OSError, ValueError) as error:
                reason = str(error)
            self.ranks.require(reason)
            self.ranks.send(memory, what.sender, lacking, PIECE)
            mine_sum = crc32(memory) if memory is not None else 0
            sums = [row[0] for row in self.ranks.gather([mine_sum])]
            if into and sums[me.rank] != sums[what.sender]:
                return f"step {what.what.step} came damaged from rank {what.sender}"
            undone.pop_all()
        if into and self.arena:
            self.arena.finish(into, self.to(what.what.step))
            read = self._origin_of_sender(what)
            self._origin = f"{read}rank {what.sender}"
        return ""

    def _origin_of_sender(self, what: Plan) -> str:
        return "disk, read by " if what.what in self._read_from_disk else "a peer, "

    def _rebuild(self, what: Plan) -> str:
        me = self.ranks.me.rank
        lost = next((one for one in what.rebuilt if one.rank == me), None)
        with contextlib.ExitStack() as undone:
            into, reason = None, ""
            try:
                if lost and self.arena:
                    into = self._begin(what.what, lost.bytes)
                    undone.callback(self.arena.abandon, into)
            except CheckpointError as error:
                reason = str(error)
            self.ranks.require(reason)
            own = partial(self._image, what.what)
            if damaged := rebuild(self.ranks, what, own, self.others, into):
                return damaged
            undone.pop_all()
        if into and self.arena:
            self.arena.finish(into, self.to(what.what.step))
            self._origin = "pieces at other nodes"
        return ""

    def _begin(self, what: StateId, size: int) -> Unfinished:
        """Memory for this rank's image; what holds it now may have to be written first."""
        assert self.arena
        until = time.monotonic() + ROOM_WITHIN
        while True:
            try:
                return self.arena.begin(
                    size,
                    what.step,
                    generation=what.generation,
                    save=what.save,
                    rank=self.ranks.me.rank,
                    world_size=self.ranks.me.world_size,
                )
            except CheckpointError:
                if time.monotonic() > until:
                    raise
            time.sleep(REST)

    def _image(self, what: StateId, of: int) -> Image | None:
        """In this rank's arena, of a rank's part."""
        for image in self.arena.found() if self.arena else []:
            if is_part(image, what, None if self.replicated else of):
                return image
        return None

    def _tell(self, step: int, of: str = "") -> None:
        where = of + (f" at {self.place}" if self._origin.startswith("disk") else "")
        log.info("rank %d: step %d%s comes from %s", self.ranks.me.rank, step, where, self._origin)
        if self.ranks.me.rank == 0:
            later = f", {after}" if (after := since_failure()) else ""
            tell(f"training goes on from step {step}{where}, which rank 0 has from {self._origin}{later}")


def is_part(image: Image, what: StateId, of: int | None) -> bool:
    """Whether that is a state's image; of a rank's part where it is not the same at all ranks. A node that has had several ranks
    may have the parts of all of them."""
    is_state = StateId(image.generation, image.save, image.step) == what
    return is_state and of in (None, image.rank)


def counted(shards: int) -> str:
    return f"{shards} shard{'s' * (shards != 1)}"
