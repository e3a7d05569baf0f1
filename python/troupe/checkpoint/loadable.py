"""What torch.load refuses by default (`weights_only=True`): told when a state is saved, not when workers that have failed cannot go on.

A state of tensors, numbers, strings and containers is always taken. Of anything else PyTorch's own unpickler is asked, on the pickle
alone: storages are stood for by such without memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
from typing import Any

import torch

from .files import first_line
from .skeleton import Pickler, dumped

try:
    from torch import _weights_only_unpickler as _restricted
except ImportError:  # torch before 1.13 refuses nothing
    _restricted = None  # type: ignore[assignment]

DEPTH_MAX = 16  # of containers in which the entry is looked for
_GLOBAL = re.compile(r"GLOBAL ([A-Za-z_][\w.]*)")


def refusal(state: Any, pickled: bytes) -> str:
    """Which entry of a state with this pickle `torch.load` refuses, and why, in words; empty if none."""
    if not _restricted or not (why := _why_not(pickled)):
        return ""
    entry = "state"
    for _ in range(DEPTH_MAX):
        for key, value in _entries(state):
            with contextlib.suppress(Exception):
                if inner := _why_not(dumped(value, Pickler).pickle):
                    entry, state, why = f"{entry}[{key!r}]", value, inner
                    break
        else:
            break
    return f"{entry} has {_named(why)}, which torch.load refuses by default"


def remedy(*names: str) -> str:
    listed = ", ".join(names) or "…"
    return f"load it with weights_only=False, or call torch.serialization.add_safe_globals([{listed}]) before the load"


def refused_at_load(file: str | os.PathLike, error: pickle.UnpicklingError) -> str:
    """The same of a file of torch.save that was refused, in one line; the error itself if that was not why."""
    if "weights_only" not in str(error).lower() and "weights only" not in str(error).lower():
        return first_line(error)
    names: list[str] = []
    with contextlib.suppress(Exception):  # torch before 2.5 does not say
        names = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))
    return f"it has {', '.join(names) or _named(str(error))}, which torch.load refuses by default; {remedy(*names)}"


def _entries(state: Any) -> list[tuple[Any, Any]]:
    if isinstance(state, dict):
        return list(state.items())
    return list(enumerate(state)) if isinstance(state, (list, tuple)) else []


def _why_not(pickled: bytes) -> str:
    reader = _restricted.Unpickler(io.BytesIO(pickled))
    reader.persistent_load = _without_memory  # type: ignore[attr-defined]
    try:
        reader.load()
    except pickle.UnpicklingError as error:
        return str(error)
    except Exception:  # what a stand-in without memory cannot do says nothing of the load
        return ""
    return ""


def _without_memory(id: tuple) -> Any:
    _, kind, _, _, elements = id
    dtype = torch.uint8 if kind is torch.UntypedStorage else kind.dtype
    size = elements * torch._utils._element_size(dtype)
    return torch.storage.TypedStorage(wrap_storage=torch.UntypedStorage(size, device="meta"), dtype=dtype, _internal=True)


def _named(why: str) -> str:
    """The class or function that is refused, if the text says it."""
    found = _GLOBAL.search(why)
    return found[1] if found else why.partition("\n")[0]
