"""Which run of training this process saves for at a place, and what that run has gone on from: ckpt/catalog/line.hpp."""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Sequence

from . import library
from .library import CheckpointError
from .ranks import Agreement, Rank

log = logging.getLogger("troupe.checkpoint")

OTHERS_LISTED = 4096
TAKEN = "saves nothing here any more"  # ckpt/catalog/newest_generation.hpp
RUN_ID = "TORCHELASTIC_RUN_ID"  # the same in all lives of a job


class Run:
    """`origin`: generation and save of the state that training went on from, where that is known. `others`: the complete steps of runs
    that this one does not stand upon, newest first, as they were when it began to save."""

    DAMAGED_MAX = 256  # limits::given_up_max

    def __init__(self, place: str, me: Rank):
        self.origin: tuple[int, int] | None = None
        self._damaged: list[tuple[int, int, bool]] = []  # see `passes_over`; the newest come first
        self.others: list[int] = []
        self._place = place
        self._name = os.environ.get(RUN_ID, "") if me.launched else ""
        self._generation = me.generation
        self._begun = False
        self._told = ""
        self._taken = False  # by a newer run, and that was told: it holds for every later save

    def goes_on_from(self, origin: tuple[int, int] | None) -> None:
        self.origin, self._begun = origin, False

    def passes_over(self, generation: int, save: int, lacks: bool) -> None:
        """A complete step that a load has found damaged: its number may be saved again. `lacks`: as files are missing or cut, and as long
        as they are."""
        self._damaged = sorted({*self._damaged, (generation, save, lacks)}, reverse=True)[: self.DAMAGED_MAX]
        self._begun = False

    def agreed(self, ranks: Agreement, asks: bool) -> int:
        """What all ranks' saves are of: the runs that have saved at the place decide it. `asks`: this rank looks there for its node.
        Collective. Raises CheckpointError at all ranks as `saves_as` does."""
        number, reason = self._generation, ""
        try:
            number = self.saves_as() if asks else number
        except CheckpointError as error:
            reason = f"{self._place}: {error}"
        ranks.require(reason)
        return max(row[0] for row in ranks.gather([number]))

    def level_of_loss(self, why: str) -> int:
        """How loud it is told that a save was lost: where a newer run saves, once."""
        before, self._taken = self._taken, TAKEN in why
        return logging.DEBUG if before and self._taken else logging.ERROR

    def saves_as(self) -> int:
        """The generation that saves here are of: this run's, or a later one where that is taken. Raises CheckpointError, with what to
        do, if another run or a later master has begun to save here."""
        raw = self._raw()
        library.call("troupe_saves_as", os.fsencode(self._place), raw)
        return raw.saves_as

    def begin(self, saves_as: int, resumed_from: int | None) -> bool:
        """Puts it on record, before the first save; later calls do nothing and answer False. Raises CheckpointError if another run has this generation
        by now. What else fails is logged, and tried again at the next call: without a record no older step is removed."""
        if self._begun:
            return False
        raw = self._raw(saves_as, resumed_from)
        others = (ctypes.c_uint64 * OTHERS_LISTED)()
        try:
            count = library.call("troupe_begin_run", os.fsencode(self._place), raw, others, OTHERS_LISTED)
        except CheckpointError as error:
            if raw.taken:
                raise
            if self._told != str(error):
                self._told = str(error)
                log.error("%s: no step of earlier runs is removed, since it cannot be told which are this one's: %s", self._place, error)
            return False
        self._begun, self.others = True, list(others[: min(count, OTHERS_LISTED)])
        return True

    def _raw(self, saves_as: int = 0, resumed_from: int | None = None) -> library.RawRun:
        generation, save = self.origin or (0, 0)
        damaged = [number for one in self._damaged for number in one]
        return library.RawRun(
            os.fsencode(self._name),
            self._generation,
            saves_as,
            generation,
            save,
            0 if resumed_from is None else resumed_from + 1,
            (ctypes.c_uint64 * len(damaged))(*damaged),
            len(self._damaged),
            0,
        )


def tell_of_others(place: str, others: Sequence[int], by_rule: bool) -> None:
    """In one line. `by_rule`: there is a rule by which older steps are removed."""
    if not others:
        return
    named = ", ".join(map(str, others[:3])) + (", …" if len(others) > 3 else "")
    kept = "the deletion strategy leaves them, and no" if by_rule else "no"
    log.warning(
        "%s holds %d step%s (%s) of runs that this one has not gone on from: %s save of this run takes the place of one",
        place, len(others), "s" * (len(others) != 1), named, kept,
    )  # fmt: skip
