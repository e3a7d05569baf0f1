"""A job of Megatron's: its steps in memory and at `--save`."""

from __future__ import annotations

import atexit
import logging
import os
from dataclasses import dataclass

from ..contents import list_name
from ..dcp.checkpointer import DcpCheckpointer
from ..files import MANIFEST, open_regular
from ..image import MEGATRON
from ..loads import FoundFiles
from ..ranks import Agreement
from ..retention import DeletionStrategy
from .again import Plan

log = logging.getLogger("troupe.checkpoint")

TRACKER = "latest_checkpointed_iteration.txt"
TRACKER_BYTES = 64


class MegatronCheckpointer(DcpCheckpointer):
    """Each rank has files of each step, or none, as Megatron decides; they are in `iter_%07d` at a place."""

    framework = MEGATRON
    goes_on = False  # the last load was one of workers that have begun already
    plan: Plan | None = None  # of the last save in torch_dist

    def default_file(self, step: int) -> tuple[str, str]:
        return directory_of(step), list_name(self.shard or 0)

    def step_to_go_on_from(self, load_place: str, asked: bool) -> FoundFiles | None:
        """The step that this job goes on from, if it is not for Megatron to read one from `load_place`: what is in memory, or the
        newest undamaged step there, if it is this job's own place. `asked`: by arguments, the job begins with another. Collective.
        """
        kept = self._arena is not None and bool(self._arena.found())
        self.goes_on = any(row[0] for row in self._ranks.gather([kept]))
        if self.goes_on:
            return self.load_files(disk=load_place == self.place)
        named = -1 if asked or load_place != self.place else named_step(self.place)
        named = self._ranks.gather([named])[0][0]  # rank 0's
        if named < 0:
            return None
        found = self.load_files()
        if found and found.step > named:
            if self.me.rank == 0:
                log.warning(
                    "%s: %s names step %d, and step %d is complete there: the tracker was set back by hand, and training goes "
                    "on from step %d",
                    self.place, TRACKER, named, found.step, named,
                )  # fmt: skip
            return None
        return found

    @property
    def ranks(self) -> Agreement:
        return self._ranks


@dataclass(frozen=True)
class Options:
    """Of a job. They are said with each call, and are the same in all."""

    save_timeout: float = 600
    replica_count: int = 0
    deletion_strategy: DeletionStrategy | None = None


_checkpointers: dict[str, tuple[MegatronCheckpointer, Options]] = {}


def of_job(place: str, comm_backend: str, options: Options) -> MegatronCheckpointer:
    """The one for a place; made by the first call, which is collective. Raises ValueError for options that have changed since."""
    if place not in _checkpointers:
        made = MegatronCheckpointer(
            place,
            comm_backend,
            options.deletion_strategy,
            options.save_timeout,
            options.replica_count,
        )
        _checkpointers[place] = (made, options)
    made, before = _checkpointers[place]
    if before != options:
        raise ValueError(f"save_checkpoint and load_checkpoint are called with {options}, and before with {before}")
    return made


@atexit.register
def close() -> None:
    """Gives the memory of all places back; what is to be written is written."""
    while _checkpointers:
        _checkpointers.popitem()[1][0].close()


def wait_latest_checkpoint(timeout: float = 1800) -> bool:
    """Waits until the last step that was saved to disk is complete. False, and logged why, if it was not kept. Collective."""
    return all([made.wait_latest_checkpoint(timeout) for made, _ in _checkpointers.values()])


def wait_latest_copies(timeout: float = 60) -> int | None:
    """As `DdpCheckpointer.wait_latest_copies`; of several places the oldest of their steps. Collective."""
    held = [made.wait_latest_copies(timeout) for made, _ in _checkpointers.values()]
    return min((step for step in held if step is not None), default=None) if None not in held else None


def directory_of(step: int) -> str:
    return f"iter_{step:07d}"


def named_step(place: str) -> int:
    """That the tracker names, if Troupe has written it; else -1."""
    try:
        with open_regular(os.path.join(place, TRACKER)) as file:
            text = file.read(TRACKER_BYTES).strip()
    except OSError:
        return -1
    if not text.isdigit() or not os.path.exists(os.path.join(place, directory_of(int(text)), MANIFEST)):
        return -1
    return int(text)
