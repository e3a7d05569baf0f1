"""The native library, which lies beside the folder of hooks: worker/troupe_worker.h says what each function does.

Functions of progress are called with the interpreter's lock held, as they take less time than giving it away would.
"""

from __future__ import annotations

import ctypes
import os
import platform
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64
from typing import Any

FOLDER = os.path.abspath(__file__).rsplit("/", 3)[0]
LIBRARY = os.path.join(FOLDER, "libtroupe_worker.so")

INPUT_BEGINS, INPUT_ENDS, BACKWARD_BEGINS, BACKWARD_ENDS = range(4)
OPTIMIZER_BEGINS, OPTIMIZER_ENDS, MINOR_OPTIMIZER_ENDS = range(4, 7)
EVALUATION_BEGINS, TRAINING_BEGINS = 7, 8
CHECKPOINT = 5
FEED_OPTIMIZER, FEED_COLLECTIVES, FEED_INPUT, FEED_PHASES = 2, 4, 16, 32

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "troupe_take_page": (c_int, []),
    "troupe_feeds": (None, [c_uint64]),
    "troupe_observed": (None, [c_uint32]),
    "troupe_phase_enter": (None, [c_uint32, c_char_p]),
    "troupe_phase_leave": (None, [c_uint32]),
    "troupe_communicator": (c_int32, [c_char_p, POINTER(c_uint32), c_size_t]),
    "troupe_collective_enter": (None, [c_int32, c_uint32, c_uint64]),
    "troupe_collective_leave": (None, [c_int32]),
    "troupe_hook_collectives": (c_uint64, [c_char_p, c_size_t]),
    "troupe_name_next": (None, [c_char_p, POINTER(c_uint32), c_size_t]),
    "troupe_named": (None, []),
    "troupe_begin_channel": (c_int, [c_char_p, c_char_p]),
    "troupe_stacks_by": (None, [c_int32]),
}

library: Any = None
on_channel = False  # the launcher hears of this process's first step


def begin() -> bool:
    """Whether this is the process that the launcher's page is for."""
    global library
    loaded = ctypes.PyDLL(LIBRARY)
    for name, (returns, arguments) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returns, arguments
    library = loaded
    return bool(loaded.troupe_take_page())


def begin_channel(torch: Any) -> None:
    global on_channel
    on_channel = bool(library.troupe_begin_channel(platform.python_version().encode(), str(torch.__version__).encode()))


def ranks(members: list[int]) -> tuple[Any, int]:
    return (c_uint32 * len(members))(*members), len(members)
