"""PyTorch's process groups: their collectives are counted by the native library, their names come from here."""

from __future__ import annotations

import ctypes
import inspect
import sys
from typing import Any

from . import attempt, debug, native

WHY_BYTES = 1024
# The numbers of worker/troupe_worker.h.
KINDS = {
    "all_reduce": 1,
    "broadcast": 2,
    "reduce": 3,
    "all_gather": 4,
    "all_gather_into_tensor": 4,
    "_all_gather_base": 4,
    "gather": 5,
    "scatter": 6,
    "reduce_scatter": 7,
    "reduce_scatter_tensor": 7,
    "_reduce_scatter_base": 7,
    "all_to_all": 8,
    "all_to_all_single": 8,
    "barrier": 9,
    "monitored_barrier": 9,
}


def hook(torch: Any) -> None:
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        return  # built without
    why = ctypes.create_string_buffer(WHY_BYTES)
    feeds = native.library.troupe_hook_collectives(why, WHY_BYTES)
    if why.value:
        debug(why.value.decode(errors="replace"))
    if not feeds:
        attempt(hook_functions, c10d)
    native.looks_on(native.python.troupe_python_groups(sets_number(torch, c10d), namer(c10d, is_row_here=not feeds)), "a name of a group")


def sets_number(torch: Any, c10d: Any) -> Any:
    """What is called of each backend of a new group, when it is ready. Before PyTorch 2.0 a group was one."""
    kind = getattr(torch._C._distributed_c10d, "Backend", None)
    if not hasattr(kind, "_set_sequence_number_for_group"):
        kind = c10d.ProcessGroup
    return native.builtin(kind._set_sequence_number_for_group)


def namer(c10d: Any, *, is_row_here: bool) -> Any:
    """PyTorch's own name of a group is the same at all members and no other group's; what the script calls it stands before it, and
    may be several groups' (all of one dimension of a device mesh)."""
    helper = c10d._new_process_group_helper.__code__

    def tell(_: Any) -> None:
        maker = sys._getframe(1)
        if maker.f_code is not helper:
            return
        said = maker.f_locals
        members = list(said.get("global_ranks_in_group", said.get("group_ranks")) or ())
        is_world = not members
        name = name_of(said.get("group_desc"), said.get("group_name"), is_world=is_world).encode()
        ranks, count = native.ranks(members or list(range(said["group_size"])))
        native.library.troupe_name_next(name, ranks, count)
        if is_row_here:
            row = native.library.troupe_communicator(name, ranks, count)
            native.python.troupe_python_group(None if is_world else id(said.get("pg")), row)

    return tell


def name_of(said: Any, own: Any, *, is_world: bool) -> str:
    if is_world and said in (None, "", "undefined", "default_pg"):
        return "default_pg"
    return str(own) if said in (None, "", "undefined") else f"{said} ({own})"


def hook_functions(c10d: Any) -> None:
    """Where the native library cannot look on at process groups: what the script calls itself, and until the call returns."""
    for name, kind in KINDS.items():
        function = getattr(c10d, name, None)
        if function is not None:
            attempt(hook_function, function, kind)
    native.library.troupe_feeds(native.FEED_COLLECTIVES)


def hook_function(function: Any, kind: int) -> None:
    decorated = inspect.unwrap(function)
    if decorated is function and sys.version_info[:2] == (3, 11):
        return  # whose calls pass by the word that is exchanged
    position = list(inspect.signature(decorated).parameters).index("group")
    native.looks_on(native.python.troupe_python_collective(decorated, kind, position), function.__name__)
