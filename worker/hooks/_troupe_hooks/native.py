"""The native libraries, which lie beside the folder of hooks: worker/troupe_worker.h and worker/python/troupe_python.h say what
each function does.

Functions of progress are called with the interpreter's lock held, as they take less time than giving it away would.
"""

from __future__ import annotations

import ctypes
import os
import platform
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

FOLDER = os.path.abspath(__file__).rsplit("/", 3)[0]
LIBRARY = os.path.join(FOLDER, "libtroupe_worker.so")
LOOKS_ON = os.path.join(FOLDER, "libtroupe_python.so")

INPUT_BEGINS, INPUT_ENDS, INPUT_IS_OVER, BACKWARD_BEGINS, BACKWARD_ENDS = range(5)
OPTIMIZER_BEGINS, OPTIMIZER_ENDS, MINOR_OPTIMIZER_ENDS, GRADIENTS_SWITCHED = range(5, 9)
NONE = -1
CHECKPOINT = 5
ENTERS, LEAVES = 1, 2
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
LOOKING_ON: dict[str, tuple[Any, list[Any]]] = {
    "troupe_python_feed": (None, [c_void_p]),
    "troupe_python_moments": (c_int, [py_object, c_int32, c_int32]),
    "troupe_python_next": (c_int, [py_object, c_int32, c_int32, c_int32]),
    "troupe_python_phase": (c_int, [py_object, c_uint32, c_int]),
    "troupe_python_end": (c_int, [py_object, py_object, c_uint32]),
    "troupe_python_optimizers": (c_int, [py_object, py_object, py_object]),
    "troupe_python_groups": (c_int, [py_object, py_object]),
    "troupe_python_collective": (c_int, [py_object, c_uint32, c_int]),
    "troupe_python_group": (None, [c_void_p, c_int32]),
}
# struct troupe_python_feeds
FED = ("observed", "phase_enter", "phase_leave", "collective_enter", "collective_leave", "named")

library: Any = None
python: Any = None
on_channel = False  # the launcher hears of this process's first step


def load(path: str, functions: dict[str, tuple[Any, list[Any]]]) -> Any:
    loaded = ctypes.PyDLL(path)
    for name, (returns, arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returns, arguments
    return loaded


def begin() -> bool:
    """Whether this is the process that the launcher's page is for."""
    global library, python
    library, python = load(LIBRARY, FUNCTIONS), load(LOOKS_ON, LOOKING_ON)
    feeds = [ctypes.cast(getattr(library, f"troupe_{name}"), c_void_p) for name in FED]
    python.troupe_python_feed((c_void_p * len(feeds))(*feeds))
    return bool(library.troupe_take_page())


def begin_channel(torch: Any) -> None:
    global on_channel
    on_channel = bool(library.troupe_begin_channel(platform.python_version().encode(), str(torch.__version__).encode()))


def ranks(members: list[int]) -> tuple[Any, int]:
    return (c_uint32 * len(members))(*members), len(members)


def builtin(function: Any) -> Any:
    """The builtin function inside a method of a class that was made in C++."""
    return getattr(function, "__func__", function)


def looks_on(done: int, at: str) -> None:
    if not done:
        raise RuntimeError(f"{at} cannot be looked on")
