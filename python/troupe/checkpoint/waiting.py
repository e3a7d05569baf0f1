"""How ranks wait together for what becomes of their last save: on the disk, and at other nodes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .copies import NONE, UNDER_WAY, Copies
from .library import CheckpointError
from .private_saver import PrivateSaver
from .ranks import summary
from .saves import Saves

if TYPE_CHECKING:
    from .ranks import Agreement

log = logging.getLogger("troupe.checkpoint")

ROUND = 10.0  # seconds, after which ranks that wait tell each other what they know
SLICE = 0.5  # seconds, in which a signal is handled


def settled(saves: Saves | None, saver: PrivateSaver | None, until: float) -> tuple[bool, str]:
    """Whether it is known by then what became of this rank's last save, and why that was lost, if it was."""
    try:
        while saves:
            left = max(0.0, until - time.monotonic())
            if saver:
                saver.require_alive()
            if saves.settled(min(SLICE, left)):
                break
            if not left:
                return False, ""
    except CheckpointError as error:
        return False, str(error)
    return True, ""


def wait_for_disk(
    ranks: Agreement,
    rank: int,
    timeout: float,
    known: Callable[[float], tuple[bool, str]],
    level_of: Callable[[str], int],
) -> bool:
    """True when the last save is complete on the disk at all ranks. Collective. `known`: as `settled`, until then; `level_of`:
    the level of the line about a loss."""
    until = time.monotonic() + timeout
    while True:
        done, reason = known(min(until, time.monotonic() + ROUND))
        late = time.monotonic() >= until
        rows = ranks.gather([done, 1 if reason else 0, late])
        if any(row[1] for row in rows):
            lost = summary(ranks.spoken(reason))
            log.log(level_of(lost), "rank %d: the last checkpoint was not kept: %s", rank, lost)
            return False
        if all(row[0] for row in rows):
            return True
        if any(row[2] for row in rows):
            waiting = ", ".join(str(rank) for rank, row in enumerate(rows) if not row[0])
            log.error(
                "rank %d: after %g s it is not known what became of the last checkpoint of rank %s",
                rank, timeout, waiting,
            )  # fmt: skip
            return False


def wait_for_copies(ranks: Agreement, copies: Copies | None, timeout: float) -> int | None:
    """The newest step that all ranks have at other nodes when copies have ended, or after `timeout` seconds. Collective."""
    until = time.monotonic() + timeout
    while True:
        left = max(0.0, until - time.monotonic())
        state = copies.state(min(SLICE, left)) if copies else NONE
        skipped = bool(copies and copies.skipped)
        states, late, more = zip(*ranks.gather([state, not left, skipped]), strict=True)
        free = copies.agree(states) if copies else UNDER_WAY not in states
        if not any(late) and not free:
            continue
        if not any(late) and any(more):
            if copies:
                copies.want_skipped()
            continue
        held = copies.held if copies else None
        newest = max(row[0] for row in ranks.gather([-1 if held is None else held]))
        return None if newest < 0 else newest
