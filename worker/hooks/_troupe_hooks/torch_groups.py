"""PyTorch's process groups: their collectives are counted by the native library, their names come from here."""

from __future__ import annotations

import ctypes
import functools
import inspect
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
    import sys

    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        return  # built without
    why = ctypes.create_string_buffer(WHY_BYTES)
    feeds = native.library.troupe_hook_collectives(why, WHY_BYTES)
    if why.value:
        debug(why.value.decode(errors="replace"))
    names = Names()
    if not feeds:
        attempt(wrap_collectives, c10d, names)
    make = c10d._new_process_group_helper
    signature = inspect.signature(make)

    @functools.wraps(make)
    def observed_helper(*arguments: Any, **named: Any) -> Any:
        made = make(*arguments, **named)
        attempt(lambda: names.tell(c10d, made, signature.bind(*arguments, **named).arguments))
        return made

    c10d._new_process_group_helper = observed_helper


class Names:
    """Of process groups. PyTorch's own name is the same at all members and no other group's; what the script calls a group
    stands before it, and may be several groups' (all of one dimension of a device mesh)."""

    def __init__(self) -> None:
        self.members: dict[int, tuple[str, list[int]]] = {}

    def tell(self, c10d: Any, made: Any, said: dict[str, Any]) -> None:
        group = made[0] if isinstance(made, tuple) else made
        if not hasattr(group, "size"):
            return  # this rank is no member: some object or number that says so
        given = said.get("global_ranks_in_group", said.get("group_ranks"))
        members = list(given) if given else list(range(group.size()))
        own = said.get("group_name") or own_name(c10d, group)
        name = name_of(said.get("group_desc"), own, is_world=not given)
        self.members[id(group)] = name, members
        ranks, count = native.ranks(members)
        native.library.troupe_name_next(name.encode(), ranks, count)
        try:
            for backend in backends(group):
                attempt(backend._get_sequence_number_for_group)
        finally:
            native.library.troupe_named()


def name_of(said: Any, own: Any, *, is_world: bool) -> str:
    if is_world and said in (None, "", "undefined", "default_pg"):
        return "default_pg"
    return str(own) if said in (None, "", "undefined") else f"{said} ({own})"


def own_name(c10d: Any, group: Any) -> Any:
    """PyTorch's, where it was not told one."""
    known = getattr(getattr(c10d, "_world", None), "pg_names", None) or getattr(c10d, "_pg_names", {})
    return known.get(group, "")


def backends(group: Any) -> list[Any]:
    """Its backends, one for each kind of device; before PyTorch 2.0 a group was one."""
    if not hasattr(group, "_get_backend"):
        return [group]
    found: list[Any] = []
    for device in getattr(group, "_device_types", []):
        attempt(lambda device=device: found.append(group._get_backend(device)))
    return [each for each in found if hasattr(each, "_get_sequence_number_for_group")] or [group]


def wrap_collectives(c10d: Any, names: Names) -> None:
    """Where the native library cannot look on: what the script calls itself, and until the call returns."""
    import torch.distributed as package

    enter, leave = native.library.troupe_collective_enter, native.library.troupe_collective_leave
    rows: dict[int, int] = {}

    def row_of(group: Any) -> int:
        key = id(group if group is not None else c10d._get_default_group())
        if key not in rows:
            name, members = names.members.get(key, (f"group {len(rows)}", []))
            rows[key] = native.library.troupe_communicator(name.encode(), *native.ranks(members))
        return rows[key]

    def counted(function: Any, kind: int) -> Any:
        @functools.wraps(function)
        def observed_function(*arguments: Any, **named: Any) -> Any:
            row = -1
            try:
                row = row_of(named.get("group"))
            except Exception:  # there is no default group: the function will say so
                pass
            enter(row, kind, 0)
            try:
                return function(*arguments, **named)
            finally:
                leave(row)

        return observed_function

    for name, kind in KINDS.items():
        original = getattr(c10d, name, None)
        if original is None:
            continue
        wrapped = counted(original, kind)
        setattr(c10d, name, wrapped)
        if getattr(package, name, None) is original:
            setattr(package, name, wrapped)
    native.library.troupe_feeds(native.FEED_COLLECTIVES)
