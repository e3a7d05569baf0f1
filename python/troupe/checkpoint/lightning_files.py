"""The files of Lightning's checkpoints in a directory: Troupe's steps, and those that Lightning's own callbacks have put there.

    ckpt/step=10.ckpt              a step of Troupe's: a marker in .troupe/steps has its number
    ckpt/epoch=0-step=20.ckpt      of a ModelCheckpoint, as are last.ckpt and directories of sharded strategies
    ckpt/set-aside/step=20.ckpt    the same, after training has come to step 20 by another way
"""

from __future__ import annotations

import logging
import os
import pickle
import re

import torch

from .files import IN_PLACE, first_line, is_own, is_step
from .others import Other

log = logging.getLogger("troupe.checkpoint")

ENDING, META = ".ckpt", "meta.pt"
_NUMBER = re.compile(r"(?:^|[^a-z])step=(\d+)")


def file_of(step: int) -> str:
    return f"step={step}{ENDING}"


def others(place: str) -> list[Other]:
    """Those with the names of Troupe's steps."""
    return [one for one in _found(place) if os.path.basename(one.path) == file_of(one.step)]


def newest_file(place: str, than: int, weights_only: bool | None) -> Other | None:
    """The one of the highest step above this, which is read from each file whose name does not say it. Each that cannot be read is
    logged, and passed over."""
    found, best = _found(place), None
    numbered = sorted((one for one in found if one.step > than), key=lambda one: -one.step)
    for one in [one for one in found if one.step < 0] + numbered:
        if best and 0 <= one.step <= best.step:
            break
        step = _step_in(one.path, weights_only)
        if step is not None and step > (best.step if best else than):
            best = Other(step, one.path)
    return best


def _found(place: str) -> list[Other]:
    """-1 for one whose name says no number."""
    found = []
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
        path = os.path.join(place, name)
        if not name.endswith(ENDING) or (os.path.isdir(path) and any(is_own(inner) for inner in os.listdir(path))):
            continue
        number = _NUMBER.search(name)
        if number and name == file_of(int(number[1])) and is_step(place, IN_PLACE, int(number[1])):
            continue
        found.append(Other(int(number[1]) if number else -1, path))
    return found


def _step_in(path: str, weights_only: bool | None) -> int | None:
    """None: it is none of Lightning's, or cannot be read."""
    file = os.path.join(path, META) if os.path.isdir(path) else path
    try:
        state = torch.load(file, mmap=True, map_location="cpu", weights_only=weights_only is not False)
        return int(state["global_step"])
    except FileNotFoundError:
        return None  # it was not written to its end
    except (OSError, RuntimeError, ValueError, EOFError, TypeError, KeyError, pickle.UnpicklingError) as error:
        log.error("%s is passed over, and stays as it is: %s", path, first_line(error))
        return None
