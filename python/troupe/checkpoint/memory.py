"""The memory for images that `actor-launcher` keeps for this process, which all its checkpointers share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
from typing import Any

from . import library
from .library import CheckpointError

# Set by actor-launcher: descriptors of memory.
VARIABLE = "TROUPE_CHECKPOINT_MEMORY"  # of this local rank
OF_NODE = "TROUPE_CHECKPOINT_MEMORY_OF_NODE"  # of local rank 0, for the others
OF_OTHERS = "TROUPE_CHECKPOINT_MEMORY_OF_OTHERS"  # in which this node holds pieces for others

TAKEN = "taken by process "  # and its number: in the place of descriptors, for programs that this process starts
PLACE_BITS = 24  # ckpt/arena/place_id.hpp: of a save's number, which place it is of

_lock = threading.Lock()
_claimed: dict[str, list[int]] = {}  # by variable: descriptors
_opened: dict[str, Any] = {}  # by variable: handles, for the life of this process


def place_number(place: str, framework: int) -> int:
    """What stands for a checkpoint directory and the framework that saves there, in memory and at other nodes; not 0."""
    text = f"{framework}\0{place}".encode(errors="surrogateescape")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")
    return number | 1 if number % (1 << PLACE_BITS) == 0 else number


def own(variable: str, missing: str) -> Any:
    """The native memory that `variable` names, opened once for this process. Raises CheckpointError, with the text `missing` where
    there is none; and if it is another process's: that of the one that has started this program, or forked it."""
    with _lock:
        descriptors = _claim(variable, missing)
        if variable not in _opened:
            how = "troupe_memory_open" if variable == VARIABLE else "troupe_memory_view"
            # What could not be looked at may be there when it is opened next; our own is, or is never to be had.
            handed = descriptors if variable == VARIABLE else [os.dup(one) for one in descriptors]
            _opened[variable] = library.call(how, library.Descriptors(*handed))
        return _opened[variable]


def is_of_another_process() -> bool:
    """Whether this process has a worker's environment and is not that worker: a program that it has started, or a child that it has
    forked."""
    if VARIABLE not in os.environ:
        return False
    try:
        with _lock:
            _claim(VARIABLE, "")
    except CheckpointError:
        return True
    return False


def is_forked() -> bool:
    """Of such a process: whether it is a child that was forked, and has what else was its parent's at that moment."""
    return bool(_claimed)


def _claim(variable: str, missing: str) -> list[int]:
    named = os.environ.get(variable)
    if named is None:
        raise CheckpointError(missing)
    if named == TAKEN + str(os.getpid()):
        return _claimed[variable]
    if named.startswith(TAKEN):
        raise CheckpointError(f"{variable} is another process's: it was {named}")
    descriptors = _descriptors(variable, named)
    if variable == VARIABLE:
        try:
            fcntl.lockf(descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)  # ours until this process ends
        except OSError as error:
            raise CheckpointError(f"{variable} is another process's, which has it open") from error
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    _claimed[variable] = descriptors
    os.environ[variable] = TAKEN + str(os.getpid())
    return descriptors


def _descriptors(variable: str, named: str) -> list[int]:
    descriptors = [int(number) for number in named.split(",") if number.isdecimal()]
    # Before any of them is taken for ours; the last is no memory.
    for descriptor in descriptors[:-1]:
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("/memfd:troupe-ckpt"):
                continue
        raise CheckpointError(
            f"{variable} is another process's: {descriptor} is not the memory that it speaks of"
        )
    if len(descriptors) != library.Descriptors._length_:
        raise CheckpointError(
            f"{variable} names {len(descriptors)} descriptors, not {library.Descriptors._length_}: "
            "actor-launcher and this package are of different releases"
        )
    return descriptors
