"""What a script says of its own progress, for the launcher that watches over it.

    troupe.step()                     # a training step is made
    with troupe.phase("sampling"):    # not a step: what takes long here has a limit of its own
        ...

Each is a store into memory that the launcher reads, below a microsecond. Without the launcher they do nothing. A script need
not say anything: steps of its optimizer and the phases that PyTorch shows are counted without.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from types import TracebackType
from typing import Any

USER = 7  # TROUPE_USER


@functools.cache
def _native() -> Any:
    """The functions of worker/troupe_worker.h, or None where there is no page to write to."""
    hooks = sys.modules.get("_troupe_hooks.native")
    if hooks is not None and hooks.library is not None:
        return hooks.library
    if not os.environ.get("TROUPE_PROGRESS_FD"):
        return None
    from .programs import ProgramNotFound, library

    try:
        # The interpreter's lock stays held: giving it away would take longer than the call.
        loaded = ctypes.PyDLL(str(library()))
    except (ProgramNotFound, OSError):
        return None
    for name, arguments in {
        "troupe_take_page": [],
        "troupe_step": [ctypes.c_uint64],
        "troupe_next_step": [],
        "troupe_touch": [],
        "troupe_phase_enter": [ctypes.c_uint32, ctypes.c_char_p],
        "troupe_phase_leave": [ctypes.c_uint32],
        "troupe_begin_channel": [ctypes.c_char_p, ctypes.c_char_p],
    }.items():
        getattr(loaded, name).argtypes = arguments
    if not loaded.troupe_take_page():
        return None
    loaded.troupe_begin_channel(sys.version.split()[0].encode(), None)
    return loaded


def step(number: int | None = None) -> None:
    """A training step is made: `number`, or the one after the last. From the first call on, the optimizer's steps are not
    counted."""
    native = _native()
    if native is None:
        return
    if number is None:
        native.troupe_next_step()
    elif number < 0:
        raise ValueError(f"the number of a step is 0 or more, not {number}")
    else:
        native.troupe_step(number)


def touch() -> None:
    """There is progress that is neither a step nor a phase: a long computation is alive."""
    if (native := _native()) is not None:
        native.troupe_touch()


class phase(contextlib.ContextDecorator):  # noqa: N801 - used as a function
    """While this is entered, the process is in a phase of this name. Phases may lie in each other; also a decorator."""

    def __init__(self, name: str) -> None:
        self.name = name.encode()

    def __enter__(self) -> phase:
        if (native := _native()) is not None:
            native.troupe_phase_enter(USER, self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if (native := _native()) is not None:
            native.troupe_phase_leave(USER)
