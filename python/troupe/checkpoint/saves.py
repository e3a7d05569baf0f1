"""One rank's saves, what all ranks say to them, and what becomes of the last one that was to be written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

from .arena import Arena
from .image import Destination, Image
from .library import CheckpointError
from .ranks import Agreement, Rank, summary
from .retention import StorageType

log = logging.getLogger("troupe.checkpoint")

STEP_MAX = 2**63 - 1


class Saves:
    """Into an arena."""

    def __init__(self, arena: Arena):
        self._arena = arena
        self._under_way = False  # a copy behind the call, of which nothing was heard
        self._to_disk = False  # and it is of a save that was to be written
        self._last: Image | str | None = None  # that was to be written; or why it will not be

    def keep(
        self, me: Rank, save: int, step: int, state: Any, to: Destination | None, disk: bool
    ) -> None:
        """`save`: its number, the same at all ranks. Raises CheckpointError if there is no room for it, and what pickle raises."""
        self.hear()
        self._under_way = self._arena.save(
            step,
            state,
            generation=me.generation,
            save=save,
            rank=me.rank,
            world_size=me.world_size,
            to=to,
            # An image that is whole only after this call must be wanted now: no call comes later.
            wanted=disk and to is not None,
        )

    @property
    def behind(self) -> bool:
        """Whether what was kept last may still be copied."""
        return self._under_way

    def last_whole(self) -> Image | None:
        """What was kept last, or before it if that failed. Waits until it is copied."""
        self.hear()
        return self._arena.newest()

    def agree(self, image: Image | None = None) -> None:
        """All ranks have this image, or what they kept last: it stays while the next one is copied."""
        if common := image or self._arena.newest():
            self._arena.agree(common)

    def want(self) -> None:
        """All ranks have kept what this one kept last: it is to be written."""
        if self._under_way:
            self._to_disk = True
            return
        image = self._arena.newest()
        assert image
        self._last = image
        try:
            self._arena.want(image)
        except CheckpointError as error:
            self._last = str(error)

    def want_found(self, image: Image) -> None:
        """An image that a process before this one has kept, as all ranks have: it is to be written, unless it was."""
        self._last = image
        try:
            if not self._arena.settled(image, 0):
                self._arena.want(image)
            self._arena.agree(image)
        except CheckpointError as error:
            self._last = str(error)

    def settled(self, within: float) -> bool:
        """Whether the last that was wanted belongs to a complete step; False: not known after `within` seconds.

        Raises CheckpointError if it was not kept.
        """
        self.hear()
        if isinstance(self._last, str):
            raise CheckpointError(self._last)
        return self._last is None or self._arena.settled(self._last, within)

    def hear(self) -> None:
        """Waits until the last save is copied; a failure of that is no failure of what comes after it."""
        if not self._under_way:
            return
        to_disk, self._under_way, self._to_disk = self._to_disk, False, False
        try:
            self._arena.wait()
        except CheckpointError as error:
            log.error("the last save is lost, since copying it failed: %s", error)
            if to_disk:
                self._last = str(error)
            return
        if to_disk:
            self._last = self._arena.newest()


def require_valid(step: Any, storage_type: Any) -> None:
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= STEP_MAX:
        raise ValueError(f"step is {step!r}; it is a whole number from 0 to {STEP_MAX}")
    if not isinstance(storage_type, StorageType):
        raise ValueError(f"storage_type is {storage_type!r}; it is StorageType.MEMORY or DISK")


def objections(
    ranks: Agreement,
    step: Any,
    disk: bool,
    to: Destination | None,
    reason: str,
    behind: bool,
    copies: int,
) -> tuple[list[str], bool, list[int]]:
    """Why no rank saves this step: it could not be kept at one, for the `reason` there, or the ranks would not save the same.
    Whether it is copied `behind` the call at any. And what each rank says of its last `copies`.

    Collective; one gather if there is nothing to object.
    """
    names = [number_of(to.directory), number_of(to.file)] if to else [0, 0]
    rows = ranks.gather([not reason, 0 if reason else step, disk, *names, behind, copies])
    some_behind, states = any(row[5] for row in rows), [row[6] for row in rows]
    failed = any(not row[0] for row in rows)
    shards = [row for row in rows if row[3]]
    same = len({(row[1], row[2]) for row in rows}) == 1
    one_directory = len({row[3] for row in shards}) <= 1
    files_of_their_own = len({row[4] for row in shards}) == len(shards)
    if not failed and same and one_directory and files_of_their_own:
        return [], some_behind, states
    where = f" as {to.directory}/{to.file}" if to else ""
    storage = StorageType.DISK if disk else StorageType.MEMORY
    spoken = ranks.spoken(reason if failed else f"would save step {step} to {storage.name}{where}")
    return spoken, some_behind, states


class Names:
    """Of the files that ranks save: no two ranks write to one."""

    def __init__(self, ranks: Agreement):
        self._ranks = ranks
        self._agreed: list[list[int]] = []  # of the last save, in short

    def objections(self, mine: Sequence[str]) -> list[str]:
        """Why these cannot be saved; the same at all ranks. Collective; one gather if no rank has other names than before."""
        numbers = [number_of(name) for name in mine]
        short = self._ranks.gather([len(mine), number_of("\0".join(mine))])
        if short == self._agreed:
            return []
        most = max(count for count, _ in short)
        rows = self._ranks.gather([*numbers, *[0] * (most - len(mine))])
        owner: dict[int, int] = {}
        twice: dict[int, tuple[int, int]] = {}
        for rank, row in enumerate(rows):
            for one in row[: short[rank][0]]:
                if owner.setdefault(one, rank) != rank:
                    twice[one] = (owner[one], rank)
        if not twice:
            self._agreed = short
            return []
        known = dict(zip(numbers, mine, strict=True))
        spoken = [f"'{known[n]}' is a file of rank {a} and of rank {b}" for n, (a, b) in twice.items() if n in known]
        return self._ranks.spoken(summary(spoken))


def number_of(name: str) -> int:
    """The same for the same names; not 0."""
    digest = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=7).digest()
    return 1 + int.from_bytes(digest, "big")
