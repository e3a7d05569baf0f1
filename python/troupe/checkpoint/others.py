"""What other makers have written beside Troupe's steps: the newest of all is gone on from, and what training passes is kept."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from .arena import complete_steps
from .checkpointer import Checkpointer
from .files import marker_of
from .library import CheckpointError, UnreadableSteps
from .progress import tell

log = logging.getLogger("troupe.checkpoint")

ASIDE, ASIDE_MAX = "set-aside", 1000

Found = TypeVar("Found")


@dataclass(frozen=True)
class Other:
    """A file or directory with a checkpoint of which no step of Troupe's is. `begun`: one was, or is being written there."""

    step: int
    path: str
    begun: bool = False


class Others:
    """Of a checkpointer's place."""

    def __init__(self, of: Checkpointer, newest: Callable[[int], Other | None]):
        """`newest(step)`: the newest one of a later step that can be read; it is called at rank 0."""
        self._of = of
        self._newest = newest
        self._passed: dict[int, tuple[Other, str]] = {}  # by the step that training may come to, and its marker then

    def newest_of_all(self, load: Callable[[], Found | None], step_of: Callable[[Found], int]) -> tuple[Found | None, Other | None]:
        """What `load` makes of the newest step of Troupe's, or one that is later than every step that it could read. Collective, and
        raises what `load` raises."""
        known = max(row[0] for row in self._of._ranks.gather([self._highest_known()]))
        found, other = None, self._said(known)
        if other:
            return None, self._begin_with(other)
        try:
            found = load()
        except UnreadableSteps as error:
            if not (other := self._said(-1)):
                raise
            if self._of.me.rank == 0:
                log.error("%s", error)
        if found and step_of(found) < known:  # steps of Troupe's are damaged
            other = self._said(step_of(found))
        return (None, self._begin_with(other)) if other else (found, None)

    def pass_by(self, them: Iterable[Other]) -> None:
        """Training may come to these: what was there when it began, and is no step that may be replaced."""
        if self._of.me.local_rank == 0:
            self._passed.update((one.step, (one, marker_of(self._of.place, one.step))) for one in them)

    def make_way(self, step: int) -> None:
        """Before this step is saved. Not collective. Another node that has come first may have moved it, and be writing there by now."""
        one, marker = self._passed.pop(step, (None, ""))
        if one and marker_of(self._of.place, step) == marker:
            set_aside(one)

    def _highest_known(self) -> int:
        """Of the steps in memory and the newest one at the place; -1: there is none."""
        steps = [image.step for image in self._of._arena.found()] if self._of._arena else []
        with contextlib.suppress(CheckpointError):
            steps += complete_steps(self._of.place, 1)
        return max(steps, default=-1)

    def _said(self, than: int) -> Other | None:
        """Rank 0's answer, at all ranks."""
        one = self._newest(than) if self._of.me.rank == 0 else None
        said = self._of._ranks.said_by_first(f"{one.step} {one.path}" if one else "")
        step, _, path = said.partition(" ")
        return Other(int(step), path) if said else None

    def _begin_with(self, one: Other) -> Other:
        self._of.begins_with(one.path)
        self._of.resumed_from = one.step
        if self._of.me.rank == 0:
            tell(
                f"training goes on from step {one.step} in {one.path}, which Troupe has not written: it is the newest that can be read"
            )
        return one


def set_aside(one: Other) -> None:
    """Training has come to this number by another way, and saves it: what is there is kept where nothing looks for steps. What cannot be
    moved stays, and the step's writer says so."""
    place, name = os.path.split(one.path)
    folder = os.path.join(place, ASIDE)
    copies = (os.path.join(folder, f"{name}.{copy}" if copy else name) for copy in range(ASIDE_MAX))
    try:
        os.makedirs(folder, exist_ok=True)
        aside = next(path for path in copies if not os.path.lexists(path))
        os.rename(one.path, aside)
    except FileNotFoundError:
        return  # another node has done it
    except (OSError, StopIteration) as error:
        log.warning("%s cannot be set aside: %s", one.path, getattr(error, "strerror", None) or f"{folder} is full")
    else:
        log.warning("%s is %s now, since training has come to step %d by another way", one.path, aside, one.step)
