"""The directories of steps in an output directory: which are to go, and which of other makers are there."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..arena import complete_steps
from ..contents import files_of_list, is_list_name
from ..files import MANIFEST, open_regular
from ..library import CheckpointError
from .checkpointer import PREFIX
from .safetensors import header_of

MARKERS = ".troupe/steps"
STEPS_LISTED = 4096
PIECE, READERS = 16 << 20, 8  # bytes that are read at once, and files
LAST_FILE = "trainer_state.json"  # Trainer writes it when all others are there
_STEP = re.compile(rf"{PREFIX}(\d+)$")


# Not by the writer's rules (ckpt/catalog/retention.hpp): this limit counts the best step, which Trainer may name after its save.
def too_many(complete: Sequence[int], limit: int, best: int | None) -> list[int]:
    """Of the complete steps, newest first, those that go, oldest first: so that `limit` are left, the newest and the best among them."""
    protected = {complete[0], best} & set(complete) if complete else set()
    most = max(0, len(complete) - max(limit, len(protected)))
    return [step for step in reversed(complete) if step not in protected][:most]


def remove_complete(place: str, limit: int, best: int | None) -> list[int]:
    """Of what is not complete nothing is touched. What was removed. Raises CheckpointError for a place that cannot be read."""
    gone = []
    for step in too_many(complete_steps(place, STEPS_LISTED), limit, best):
        directory = os.path.join(place, f"{PREFIX}{step}")
        if os.path.exists(os.path.join(directory, MANIFEST)):
            os.unlink(os.path.join(directory, MANIFEST))  # first: from here on it is no step
            shutil.rmtree(directory, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(place, MARKERS, str(step)))
            gone.append(step)
    return gone


def step_of(path: str | None) -> int | None:
    found = _STEP.search(os.path.normpath(path)) if path else None
    return int(found[1]) if found else None


def newest_of_others(place: str) -> str | None:
    """The last checkpoint that was not made by Troupe and was written to its end, by Trainer's own rule: the highest number."""
    rows = []
    for name in _names(place):
        found = _STEP.match(name)
        if not found or os.path.lexists(os.path.join(place, MARKERS, found[1])):
            continue
        if os.path.isfile(os.path.join(place, name, LAST_FILE)):
            rows.append((int(found[1]), name))
    return os.path.join(place, max(rows)[1]) if rows else None


def _names(place: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(place)
    return []


def require_readable(directory: str) -> None:
    """Raises CheckpointError that names the file if one of a checkpoint was cut short, or is none of its kind."""
    if not os.path.isdir(directory):
        raise CheckpointError(f"{directory} is no directory with a checkpoint")
    for above, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(above, name)
            if why := _wrong(path):
                raise CheckpointError(f"{path}: {why}")


def require_whole(directory: str, checksums: bool = True) -> None:
    """Raises CheckpointError that names the file if one of a complete step is not as it was written, or of a checkpoint that others
    have written, as `require_readable` does. Without `checksums` only sizes are looked at."""
    require_readable(directory)
    lists = [name for name in sorted(_names(directory)) if is_list_name(name)]
    rows = [row for name in lists for row in _listed(os.path.join(directory, name))]
    with ThreadPoolExecutor(READERS) as readers:  # zlib lets go of the interpreter
        why = readers.map(lambda row: _not_as_written(os.path.join(directory, row[0]), row[1], row[2] if checksums else None), rows)
        for (name, *_), reason in zip(rows, why, strict=True):
            if reason:
                raise CheckpointError(f"{os.path.join(directory, name)}: {reason}")


def _listed(path: str) -> list[tuple[str, int, int]]:
    try:
        with open_regular(path) as file:
            return files_of_list(file.read())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _not_as_written(path: str, size: int, crc32: int | None) -> str:
    try:
        with open_regular(path) as file:
            has, found = os.fstat(file.fileno()).st_size, 0
            if has != size:
                return f"it has {has} bytes, and {size} were written"
            while crc32 is not None and (piece := file.read(PIECE)):
                found = zlib.crc32(piece, found)
    except OSError as error:
        return error.strerror or str(error)
    return "" if crc32 in (None, found) else "it is damaged: its checksum is not that of what was written"


def _wrong(path: str) -> str:
    try:
        if path.endswith(".safetensors"):
            with open_regular(path) as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return "it is empty"
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    header_of(content)
        elif path.endswith((".pt", ".pth")) and not zipfile.is_zipfile(path):
            return "it is no file of torch.save, or was cut short"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
