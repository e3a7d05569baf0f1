"""A state dict as `torch.save` writes it: what pickle makes of it, and the storages that hold its numbers.

The format is torch/serialization.py's (`_save` in 2.13): storages are left out of the pickle by persistent ids
`("storage", type, key, location, number of elements)` and are numbered in the order in which they are met.
"""

from __future__ import annotations

import contextlib
import gc
import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

PROTOCOL = 2  # what torch.save uses, and what torch.load's restricted unpickler reads


@dataclass
class Skeleton:
    pickle: bytes
    storages: list[torch.UntypedStorage]  # by their keys in the pickle: "0", "1", …

    @property
    def bytes(self) -> int:
        """Of all storages together and the pickle: the file is larger by some 200 bytes for each storage."""
        return len(self.pickle) + sum(storage.nbytes() for storage in self.storages)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=PROTOCOL)
        self.storages: list[torch.UntypedStorage] = []
        self.keys: dict[int, str] = {}  # by the identity of a storage
        self.types: dict[tuple[str, int], torch.dtype] = {}  # by the place of its data

    def persistent_id(self, obj: Any) -> tuple | None:
        if isinstance(obj, torch.storage.TypedStorage):
            storage, dtype = obj._untyped_storage, obj.dtype
            kind, elements = getattr(torch, obj._pickle_storage_type()), obj._size()
        elif isinstance(obj, torch.UntypedStorage):
            storage, dtype, kind = obj, torch.uint8, torch.UntypedStorage
            elements = obj.nbytes()
        else:
            return None
        location = torch.serialization.location_tag(storage)
        if storage.data_ptr():
            known = self.types.setdefault((location, storage.data_ptr()), dtype)
            if known != dtype:
                raise ValueError(
                    f"two tensors view the same data as {known} and as {dtype}; torch.load could not give both back"
                )
        key = self.keys.get(storage._cdata)
        if key is None:
            key = self.keys[storage._cdata] = str(len(self.storages))
            self.storages.append(storage)
        return ("storage", kind, key, location, elements)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """A pickler keeps all that it has met, thousands of objects without a cycle: looking for one takes as long as the rest."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _culprit(state: Any) -> str:
    """The innermost entry that pickle does not take: "state['scheduler']['lr_lambda']"."""
    name, deeper = "state", True
    while deeper:
        deeper = False
        entries = state.items() if isinstance(state, dict) else ()
        if isinstance(state, (list, tuple)):
            entries = enumerate(state)
        for key, value in entries:
            try:
                _Pickler(io.BytesIO()).dump(value)
            except Exception:
                name, state, deeper = f"{name}[{key!r}]", value, True
                break
    return name


def pickled(state: Any) -> Skeleton:
    """Anything that torch.save takes. No tensor's data is read or copied.

    Raises what pickle raises for what it cannot write, with the name of the entry, and ValueError for data that is viewed as two types.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    with _without_collector():
        try:
            pickler.dump(state)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise type(error)(f"{_culprit(state)} cannot be saved: {error}") from error
    return Skeleton(file.getvalue(), pickler.storages)
