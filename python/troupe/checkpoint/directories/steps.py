"""The directories of steps in an output directory: which are to go, and which the framework itself has written.

    ckpt/checkpoint-10/            a step of Troupe's, with a manifest
    ckpt/checkpoint-20/            of a run without Troupe: no name of Troupe's in it
    ckpt/set-aside/checkpoint-20/  the same, after training has come to step 20 by another way
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterator, Sequence

from ..arena import complete_steps
from ..files import MANIFEST, is_own
from ..library import CheckpointError
from ..others import Other
from .readable import require_readable

log = logging.getLogger("troupe.checkpoint")

PREFIX = "checkpoint-"
MARKERS = ".troupe/steps"
STEPS_LISTED = 4096
LAST_FILE = "trainer_state.json"  # Trainer writes it when all others are there
_STEP = re.compile(rf"{PREFIX}(\d+)$")


# Not by the writer's rules (ckpt/catalog/retention.hpp): this limit counts the best step, which Trainer may name after its save.
def too_many(complete: Sequence[int], limit: int, best: int | None) -> list[int]:
    """Of the complete steps, newest first, those that go, oldest first: so that `limit` are left, the newest and the best among them."""
    protected = {complete[0], best} & set(complete) if complete else set()
    most = max(0, len(complete) - max(limit, len(protected)))
    return [step for step in reversed(complete) if step not in protected][:most]


def remove_complete(place: str, limit: int, best: int | None, others: Collection[int] = ()) -> list[int]:
    """Of what is not complete nothing is touched, nor of the steps of `others`. What was removed. Raises CheckpointError for a place
    that cannot be read."""
    gone = []
    complete = [step for step in complete_steps(place, STEPS_LISTED) if step not in others]
    for step in too_many(complete, limit, best):
        directory = os.path.join(place, f"{PREFIX}{step}")
        if os.path.exists(os.path.join(directory, MANIFEST)):
            if os.path.islink(directory):
                os.unlink(directory)  # what it leads to is not of this place
            else:
                os.unlink(os.path.join(directory, MANIFEST))  # first: from here on it is no step
                shutil.rmtree(directory, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(place, MARKERS, str(step)))
            gone.append(step)
    return gone


def step_of(path: str | None) -> int | None:
    found = _STEP.search(os.path.normpath(path)) if path else None
    return int(found[1]) if found else None


# ---- Of the framework itself ----


def others(place: str) -> list[Other]:
    """The highest number first, which is the newest one by Trainer's own rule."""
    found = []
    for name in _names(place):
        number = _STEP.match(name)
        path = os.path.join(place, name)
        if number and os.path.isdir(path) and not any(is_own(name) for name in _names(path)):
            begun = os.path.lexists(os.path.join(place, MARKERS, number[1]))
            found.append(Other(int(number[1]), path, begun))
    return sorted(found, key=lambda one: one.step, reverse=True)


def above(place: str, step: int) -> list[Other]:
    """All directories of higher numbers, of whichever maker."""
    found = [Other(number, os.path.join(place, name)) for name in _names(place) if (number := step_of(name)) is not None and number > step]
    return [one for one in found if os.path.isdir(one.path)]


def whole_others(place: str, last_file: str, than: int) -> Iterator[Other]:
    """Those of higher numbers `than` this that were written to their end, newest first. `last_file`: the framework writes it when all others are
    there. Each that has it and cannot be read is logged."""
    for one in others(place):
        if one.step <= than or not os.path.isfile(os.path.join(one.path, last_file)):
            continue
        try:
            require_readable(one.path)
            if last_file == LAST_FILE:
                _require_state(one)
        except CheckpointError as error:
            log.error("%s is passed over, and stays as it is: %s", one.path, error)
            continue
        yield one


def _names(directory: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(directory)
    return []


def _require_state(one: Other) -> None:
    path = os.path.join(one.path, LAST_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            step = json.load(file).get("global_step")
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: it is no state of a Trainer") from error
    if step != one.step:
        raise CheckpointError(f"{path}: it is of step {step}")
