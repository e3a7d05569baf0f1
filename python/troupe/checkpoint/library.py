"""The native library, by ctypes: worker/troupe_ckpt.h says what each function does."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from ..programs import library

WHY_BYTES = 1024


class CheckpointError(RuntimeError):
    """What could not be saved or read, and why, in one line."""


class DamagedShard(CheckpointError):
    """A file of a complete step has other bytes than the step's manifest says."""


class LackingShard(CheckpointError):
    """A file of a complete step is not there, or has another size than the step's manifest says."""


class UnreadableSteps(CheckpointError):
    """There are steps at a place, and none of them can be read."""


Bytes = ctypes.c_ubyte
SLOTS = 16  # TROUPE_ARENA_SLOTS
Descriptors = c_int32 * 19  # TROUPE_ARENA_DESCRIPTORS
MEMBERS = 16  # TROUPE_GROUP_MEMBERS
LAST_SAVE = 2**64 - 1  # TROUPE_LAST_SAVE
HELD_BEFORE = 4096  # TROUPE_HELD_BEFORE


class RawImage(ctypes.Structure):
    _fields_ = [
        ("step", c_uint64),
        ("generation", c_uint64),
        ("save", c_uint64),
        ("rank", c_uint32),
        ("world_size", c_uint32),
        ("bytes", c_uint64),
        ("slot", c_uint64),
        ("sequence", c_uint64),
        ("descriptor", c_int32),
    ]


class RawDestination(ctypes.Structure):
    _fields_ = [
        ("place", c_char_p),
        ("directory", c_char_p),
        ("file", c_char_p),
        ("framework", c_uint32),
        ("shard", c_uint32),
        ("shards", c_uint32),
        ("save_within_ms", c_uint64),
        ("keep_latest", c_uint64),
        ("keep_every", c_uint64),
        ("resumed", c_uint64),
        ("resumed_after", c_uint64),
    ]


class RawRun(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("generation", c_uint64),
        ("saves_as", c_uint64),
        ("from_generation", c_uint64),
        ("from_save", c_uint64),
        ("from_step", c_uint64),
        ("damaged", POINTER(c_uint64)),
        ("damaged_count", c_size_t),
        ("taken", c_uint32),
    ]


class RawGroup(ctypes.Structure):
    _fields_ = [
        ("members", c_uint32),
        ("parity", c_uint32),
        ("me", c_uint32),
        ("ranks", POINTER(c_uint32)),
        ("addresses", POINTER(c_char_p)),
        ("within_ms", c_uint64),
    ]


class RawFile(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("parts", c_size_t)]


class RawLeft(ctypes.Structure):
    _fields_ = [("places", POINTER(c_uint64)), ("pinned_end", c_uint64)]


FAILURES = {-1: CheckpointError, -2: DamagedShard, -3: LackingShard}  # TROUPE_DAMAGED, TROUPE_LACKING

PIN = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64)
UNPIN = ctypes.CFUNCTYPE(None, c_void_p)

IMAGE, DESTINATION = POINTER(RawImage), POINTER(RawDestination)

# name: (what it returns, its arguments but for the last two, which say where to say why and how much room is there)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "troupe_memory_open": (c_void_p, [c_void_p]),
    "troupe_memory_view": (c_void_p, [c_void_p]),
    "troupe_arena_open": (c_void_p, [c_uint32, c_uint32, c_void_p, c_uint64, c_char_p]),
    "troupe_arena_view": (c_void_p, [c_void_p, c_uint64]),
    "troupe_images_of_others": (c_int, [c_void_p, c_char_p, c_size_t]),
    "troupe_arena_prepare": (c_int, [c_void_p, c_uint64, c_void_p, c_void_p, c_size_t]),
    "troupe_arena_prepared": (c_int, [c_void_p]),
    "troupe_arena_copy_on_write": (c_int, [c_void_p]),
    "troupe_arena_pin_by": (c_int, [c_void_p, PIN, UNPIN]),
    "troupe_save": (
        c_int,
        [
            *[c_void_p, IMAGE, DESTINATION, c_int, c_char_p, c_uint64],
            *[c_void_p, c_void_p, c_size_t, POINTER(RawLeft)],
        ],
    ),
    "troupe_save_files": (
        c_int,
        [
            *[c_void_p, IMAGE, DESTINATION, c_int, POINTER(RawFile), c_size_t, c_void_p, c_size_t],
            *[c_void_p, c_void_p, c_size_t, c_uint64, POINTER(RawLeft)],
        ],
    ),
    "troupe_lay_out": (c_int, [POINTER(RawFile), c_size_t, c_void_p, c_size_t, c_void_p, c_size_t]),
    "troupe_last_file": (c_int, [c_void_p, c_char_p, c_char_p, c_uint64]),
    "troupe_files": (c_int, [c_void_p, c_uint64, c_char_p, c_size_t]),
    "troupe_listed": (c_int, [c_void_p, c_uint64, c_char_p, c_size_t]),
    "troupe_saved": (c_int, [c_void_p]),
    "troupe_request_persist": (c_int, [c_void_p, c_uint64]),
    "troupe_finalized": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "troupe_begin": (c_int, [c_void_p, c_uint64, IMAGE, POINTER(c_void_p)]),
    "troupe_finish": (c_int, [c_void_p, IMAGE, DESTINATION]),
    "troupe_complete_steps": (c_int, [c_char_p, c_void_p, c_size_t]),
    "troupe_steps_passed_over": (c_int, [c_char_p, IMAGE, c_char_p, c_size_t]),
    "troupe_step_directory": (c_int, [c_char_p, c_uint64, c_char_p, c_size_t]),
    "troupe_saves_as": (c_int, [c_char_p, POINTER(RawRun)]),
    "troupe_begin_run": (c_int, [c_char_p, POINTER(RawRun), c_void_p, c_size_t]),
    "troupe_foreign_steps": (c_int, [c_char_p, c_char_p, c_size_t]),
    "troupe_load_view": (
        c_int,
        [c_void_p, c_void_p, c_char_p, c_uint64, c_uint32, c_uint32, c_uint32, c_void_p, c_size_t],
    ),
    "troupe_plan_load": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "troupe_shard_bytes": (c_int, [c_char_p, IMAGE, c_uint32]),
    "troupe_read_shard": (c_int, [c_char_p, IMAGE, c_uint32, c_void_p]),
    "troupe_open_for_mapping": (c_void_p, [c_void_p, c_uint64, c_uint64]),
    "troupe_seal": (c_int, [c_void_p, c_uint64]),
    "troupe_verify": (c_int, [c_void_p, c_uint64]),
    "troupe_request_copies": (c_int, [c_void_p, POINTER(c_uint64), POINTER(RawGroup)]),
    "troupe_copies_finalized": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "troupe_set_replica_base": (c_int, [c_void_p, c_uint64]),
}
WITHOUT_WHY: dict[str, tuple[Any, list[Any]]] = {
    "troupe_memory_close": (None, [c_void_p]),
    "troupe_arena_close": (None, [c_void_p]),
    "troupe_arena_descriptors": (None, [c_void_p, c_void_p]),
    "troupe_arena_images": (c_uint32, [c_void_p]),
    "troupe_arena_notice": (c_int, [c_void_p, c_char_p, c_size_t]),
    "troupe_end_mapping": (None, [c_void_p]),
    "troupe_filled": (None, [c_void_p, c_char_p]),
    "troupe_no_last_file": (None, [c_void_p, c_char_p]),
    "troupe_list_name": (None, [c_uint32, c_char_p]),
    "troupe_abandon": (None, [c_void_p, c_uint64]),
    "troupe_set_rollback_point": (None, [c_void_p, c_uint64]),
    "troupe_images": (c_int, [c_void_p, IMAGE]),
    "troupe_piece_bytes": (c_uint64, [c_uint32, c_uint32, c_uint64]),
    "troupe_piece_of": (c_int32, [c_uint32, c_uint32, c_uint32, c_uint32]),
    "troupe_target": (c_int32, [c_uint32, c_uint32, c_uint32, c_uint32]),
    "troupe_accumulate": (None, [c_void_p, c_void_p, c_uint64, c_uint32]),
    "troupe_crc32": (c_uint32, [c_uint32, c_void_p, c_uint64]),
    "troupe_same_pattern": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "troupe_in_order": (None, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
}


@functools.cache
def load() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library()))
    for name, (returns, arguments) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returns, [*arguments, c_char_p, c_size_t]
    for name, (returns, arguments) in WITHOUT_WHY.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returns, arguments
    return loaded


def call(name: str, *arguments: object) -> Any:
    """Calls a function that can fail, without the interpreter's lock. Raises CheckpointError with its reason."""
    why = ctypes.create_string_buffer(WHY_BYTES)
    done = getattr(load(), name)(*arguments, why, WHY_BYTES)
    if done is None or done in FAILURES:
        raise FAILURES.get(done, CheckpointError)(why.value.decode(errors="replace"))
    return done
