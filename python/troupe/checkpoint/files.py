"""Files of torch.save on a disk, and what a place of steps says of itself."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import pickle
import stat
import tempfile
from typing import Any, BinaryIO

import torch

from . import library
from .library import CheckpointError

IN_PLACE = "."  # the directory of a step whose files lie in the place itself
OWN = ".troupe"  # what is Troupe's own at a place
MANIFEST = "troupe-manifest.json"  # in the directory of a complete step: ckpt/catalog/manifest.hpp
LISTS = "troupe-files-"  # and the lists of its files: ckpt/snapshot/file_list.hpp
NAME_BYTES = 255
PLACE_BYTES = 1023
LINES_BYTES = 4096  # of what is told of steps and other tools' checkpoints


def steps_passed_over(place: str, than: library.RawImage | None) -> list[tuple[str, bool]]:
    """Steps at a place that are damaged, not complete or gone, and newer than this state, or all: which and why, in words, and whether
    it was complete once."""
    lines = ctypes.create_string_buffer(LINES_BYTES)
    library.call("troupe_steps_passed_over", os.fsencode(place), than, lines, LINES_BYTES)
    found = [line.split("\t") for line in os.fsdecode(lines.value).splitlines()]
    return [(f"{row[0]}: {row[1]}", row[2:] != ["0"]) for row in found if len(row) > 1]  # the last may be cut


def foreign_steps(place: str) -> list[tuple[str, int, str]]:
    """Checkpoints of other tools at a place, the latest first: directory, step, and the tracker that names it."""
    lines = ctypes.create_string_buffer(LINES_BYTES)
    library.call("troupe_foreign_steps", os.fsencode(place), lines, LINES_BYTES)
    found = [line.split("\t") for line in os.fsdecode(lines.value).splitlines()]
    return [(directory, int(step), tracker) for directory, step, tracker in found]


def is_step(place: str, directory: str, step: int) -> bool:
    """Whether a directory at a place, or IN_PLACE, is a step's that was begun there, or is complete."""
    manifest = f"troupe-manifest-{step}.json" if directory == IN_PLACE else os.path.join(directory, MANIFEST)
    return any(os.path.lexists(os.path.join(place, name)) for name in (f"{OWN}/steps/{step}", manifest))


def is_own(name: str) -> bool:
    """Of a file in a step's directory: whether Troupe has put it there beside the framework's."""
    return name == MANIFEST or name.startswith((OWN, LISTS))


def names_of_people(place: str) -> list[str]:
    """What there is in a directory where no job of Troupe's has saved; nothing in any other."""
    with contextlib.suppress(OSError):
        names = os.listdir(place)
        if OWN not in names:
            return sorted(name for name in names if not name.startswith("."))
    return []


def marker_of(place: str, step: int) -> str:
    """As its first node has written it when a save of the step began; "" without one."""
    with contextlib.suppress(OSError, UnicodeError), open(os.path.join(place, OWN, "steps", str(step)), encoding="utf-8") as marker:
        return marker.read(2 * PLACE_BYTES)
    return ""


def directory_of(place: str, step: int) -> str:
    """That a step is in which was begun at a place, or is complete there; "" for one that is neither, or could not be read."""
    if marker := marker_of(place, step):
        return marker.partition("\n")[0]
    directory = ctypes.create_string_buffer(PLACE_BYTES)
    with contextlib.suppress(CheckpointError):
        library.call("troupe_step_directory", os.fsencode(place), step, directory, PLACE_BYTES)
    return os.fsdecode(directory.value)


def manifest_of(directory: str) -> dict[str, Any]:
    """What the manifest of a complete step says; nothing of a directory without one, or with one that cannot be read."""
    with contextlib.suppress(OSError, ValueError), open_regular(os.path.join(directory, MANIFEST)) as file:
        said = json.load(file)
        return said if isinstance(said, dict) else {}
    return {}


def placed(place: str, path: str) -> tuple[str, str]:
    """Directory and file of a custom path; the directory is IN_PLACE for a file directly in the place.

    Raises ValueError if the path is neither `<place>/<file>` nor `<place>/<directory>/<file>`.
    """
    above, file = os.path.split(os.path.abspath(path))
    outer, directory = os.path.split(above)
    if above == place:
        directory = IN_PLACE
    elif outer != place:
        raise ValueError(f"path: '{path}' is neither {place}/<file> nor {place}/<directory>/<file>")
    for part in [file] if directory == IN_PLACE else [directory, file]:
        if not part or part.startswith(".") or len(os.fsencode(part)) > NAME_BYTES:
            raise ValueError(
                f"path: '{path}': '{part}' is empty, begins with a dot or has more than {NAME_BYTES} bytes"
            )
    return directory, file


def not_writable(place: str) -> str:
    """Makes the directory if there is none. Why files cannot be made in one that can be read: it is of use to a reader.

    Raises CheckpointError if it is of use to none."""
    try:
        os.makedirs(place, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        why = f"checkpoint_dir: {place} cannot be written: {_why_no_directory(place) or error.strerror}"
        if not os.path.isdir(place) or not os.access(place, os.R_OK | os.X_OK):
            raise CheckpointError(why) from error
        return why


def _why_no_directory(place: str) -> str:
    """What is there in the place of a directory, if anything is; the first part of the path that is none."""
    above = place
    while above != os.path.dirname(above) and not os.path.lexists(above):
        above = os.path.dirname(above)
    if os.path.isdir(above):
        return ""
    what = f"a link to {os.readlink(above)}, which is not there" if not os.path.exists(above) else "no directory"
    return f"{'it' if above == place else above} is {what}"


def load_file(path: str, *, weights_only: bool, map_location: Any) -> Any:
    """The state in a file of torch.save, mapped. Raises CheckpointError that names it if it is missing, damaged or no such file."""
    try:
        with open_regular(path) as file:
            verify(file.fileno())
        return torch.load(path, mmap=True, weights_only=weights_only, map_location=map_location)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from error
    except pickle.UnpicklingError as error:
        from .loadable import refused_at_load

        raise CheckpointError(f"{path}: {refused_at_load(path, error)}") from error
    except (RuntimeError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path}: {first_line(error)}") from error


def open_regular(path: str) -> BinaryIO:
    """Opens a regular file for reading, and nothing else: to open a FIFO, or to read a device, may take for ever.

    Raises OSError.
    """
    flags = os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(
            errno.ENXIO, "it is no regular file (a FIFO, a socket or a device)", path
        )
    try:
        return open(os.open(path, flags | os.O_NONBLOCK), "rb")
    except BlockingIOError:  # a lease, which the kernel takes away soon
        return open(os.open(path, flags), "rb")


def verify(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    if size == 0:
        raise CheckpointError("it is empty")
    # ctypes only tells the address of a mapping that may be written to; this one never is. It goes with its last user.
    content = mmap.mmap(descriptor, size, flags=mmap.MAP_PRIVATE)
    library.call("troupe_verify", (library.Bytes * size).from_buffer(content), size)


def first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
