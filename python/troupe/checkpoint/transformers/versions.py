"""The output directories of ms-swift's runs, and which of their checkpoints a new run goes on from.

    output/v0-20261126-152945/checkpoint-3, checkpoint-6, dlrover_latest.txt
    output/v1-…/                                  was cut off before its first save
    output/v2-…/                                  the run that begins now

ms-swift opens a new directory for each start, and resumes from the one just before it alone: here from none, so that all would
begin anew. What the older ones have is carried forward, so that its own rule finds it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..arena import complete_steps
from ..directories.checkpointer import PREFIX
from ..directories.readable import require_whole
from ..directories.steps import LAST_FILE, STEPS_LISTED
from ..files import manifest_of
from ..library import CheckpointError
from ..ranks import COUNTS_OF_A_TERM, number

log = logging.getLogger("troupe.checkpoint")

TRACKER = "dlrover_latest.txt"
TRACKER_BYTES = 32


@dataclass(frozen=True)
class Resumable:
    """A complete step of a run. `ended`: it is the run's last one."""

    run: str
    step: int
    ended: bool = False

    @property
    def path(self) -> str:
        return os.path.join(self.run, f"{PREFIX}{self.step}")


def version_of(name: str) -> int | None:
    """Of a run's directory, by ms-swift's rule: v<number>, and what comes behind a dash."""
    number = name[1:].split("-", 1)[0]
    return int(number) if name.startswith("v") and number.isdecimal() else None


def earlier_runs(run: str) -> list[str]:
    """The directories of runs before this one, the latest first; of a directory that is no version, none."""
    above, name = os.path.split(os.path.abspath(run))
    mine = version_of(name)
    if mine is None:
        return []
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        found = [(version_of(entry.name), entry.name) for entry in entries if entry.is_dir()]
        return [os.path.join(above, each) for version, each in sorted((v, n) for v, n in found if v is not None and v < mine)][::-1]
    return []


def steps_of(run: str, only: Callable[[Resumable], bool] | None = None) -> Iterator[Resumable]:
    """What a run may be resumed from, the newest first. What is damaged is told of and passed over. `only`: of these steps, of which this
    job has written the files itself, so that their checksums are not looked at."""
    tracked = tracked_step(run)
    ours = complete_steps(run, STEPS_LISTED)
    # A tracker that names a step which is not ours was written by another tool, or names one that was carried here.
    for step in ours if tracked is None or tracked in ours else [tracked, *ours]:
        found = Resumable(run, step)
        if only and not only(found):
            continue
        try:
            yield Resumable(run, step, ended=_ended(found, checksums=not only))
        except CheckpointError as error:
            log.error("step %d in %s is not resumed from, and stays as it is: %s", step, run, error)


def newest(runs: list[str]) -> Resumable | None:
    """Of the latest run that has one. Raises CheckpointError if there are only such as cannot be resumed from: to begin anew is for the
    user to decide."""
    found = next((found for run in runs for found in steps_of(run)), None)
    if not found and (left := [run for run in runs if os.path.exists(os.path.join(run, TRACKER)) or complete_steps(run, 1)]):
        raise CheckpointError(
            f"{left[0]} has no checkpoint that can be resumed from, and its {TRACKER} or its files say that there was one: repair it, "
            "or begin anew with another --output_dir"
        )
    return found


def carry(found: Resumable, run: str) -> bool:
    """The step becomes that run's newest: its directory is a link there, and the tracker names it. It stays where it is. False: a run
    that was cut off has left another directory of that name there.

    Raises OSError.
    """
    link = os.path.join(run, f"{PREFIX}{found.step}")
    if os.path.islink(link) and not os.path.exists(link):
        os.unlink(link)
    if not os.path.lexists(link):
        with contextlib.suppress(FileExistsError):
            # To where the files are: a chain of links would grow with each run that is cut off.
            os.symlink(os.path.relpath(os.path.realpath(found.path), os.path.realpath(run)), link)
    if os.path.realpath(link) != os.path.realpath(found.path):
        return False
    if tracked_step(run) != found.step:
        part = os.path.join(run, f".{TRACKER}.{os.getpid()}")
        with open(part, "w") as file:
            file.write(str(found.step))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, os.path.join(run, TRACKER))
    return True


def tracked_step(run: str, tracker: str = TRACKER) -> int | None:
    with contextlib.suppress(OSError), open(os.path.join(run, tracker), "rb") as file:
        text = file.read(TRACKER_BYTES).strip()
        return int(text) if text.isdigit() else None
    return None


def is_of_this_job(found: Resumable) -> bool:
    """It was saved by workers whom the master of these ones had started before them."""
    mine, saved = number("TROUPE_GENERATION", 0), manifest_of(found.path).get("generation")
    return isinstance(saved, int) and saved < mine and saved // COUNTS_OF_A_TERM == mine // COUNTS_OF_A_TERM


def _ended(found: Resumable, checksums: bool) -> bool:
    """Raises CheckpointError, with the file's name, for a step that is not as it was written."""
    require_whole(found.path, checksums)
    path = os.path.join(found.path, LAST_FILE)
    try:
        with open(path, "rb") as file:
            state = json.load(file)
        return bool(state.get("max_steps") == found.step)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: it is no state of a Trainer") from error
