"""The file `.metadata` of a step: PyTorch's Metadata, pickled. It says where the items of all ranks lie."""

from __future__ import annotations

import collections
import io
import os
import pathlib
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.distributed.checkpoint import filesystem
from torch.distributed.checkpoint import metadata as of_torch
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan

from ..library import CheckpointError

NAME = ".metadata"
VERSION = getattr(filesystem, "CURRENT_DCP_VERSION", None)  # PyTorch 2.8

# Bytes of an item, beside its name: where it lies in its tensor and in its file, which is said up to three times.
_ITEM, _DIMENSION, _NAMES = 768, 96, 5
_ROOM_LEAST = 1 << 16

StorageInfo = filesystem._StorageInfo


def room_for(plans: Iterable[SavePlan]) -> int:
    """Bytes that suffice for the metadata of what these plans of all ranks write."""
    room = _ROOM_LEAST
    for plan in plans:
        room += len(pickle.dumps(plan.planner_data))
        for item in plan.items:
            dimensions = len(item.index.offset or ())
            room += _ITEM + _DIMENSION * dimensions + _NAMES * len(item.index.fqn.encode())
    return room


def written(metadata: Metadata, where: dict[MetadataIndex, Any], place: str, name: str) -> bytes:
    """`where`: the _StorageInfo of each item. `name`: of the save, for people."""
    metadata.storage_data = where
    if VERSION:
        metadata.version = VERSION
    if hasattr(of_torch, "StorageMeta"):
        metadata.storage_meta = of_torch.StorageMeta(checkpoint_id=place, save_id=name)
    return pickle.dumps(metadata)


class _Unpickler(pickle.Unpickler):
    """What comes from another rank makes what metadata consists of, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is None and module == "torch" and isinstance(value := getattr(torch, name, None), torch.dtype):
            known = value
        for safe in torch.serialization.get_safe_globals() if known is None else ():
            if (getattr(safe, "__module__", ""), getattr(safe, "__qualname__", "")) == (module, name):
                known = safe
        if known is None:
            raise pickle.UnpicklingError(
                f"it has a {module}.{name}; if that is a planner's own class, allow it by "
                "torch.serialization.add_safe_globals"
            )
        return known


def _member(of: Any, name: str) -> Any:
    """In the place of `getattr`, by which an enumeration's members are pickled in Python 3.11."""
    if of is not of_torch._MEM_FORMAT_ENCODING:
        raise pickle.UnpicklingError(f"it asks for a member of {of!r}")
    return of[name]


def _known() -> dict[tuple[str, str], Any]:
    classes: list[Any] = [
        *(getattr(of_torch, name) for name in of_torch.__all__ if isinstance(getattr(of_torch, name), type)),
        of_torch._MEM_FORMAT_ENCODING,
        StorageInfo,
        torch.Size,
        torch.device,
        collections.OrderedDict,
        pathlib.PosixPath,
    ]
    found = {(each.__module__, each.__qualname__): each for each in classes}
    found["pathlib", "PosixPath"] = found["pathlib._local", "PosixPath"] = pathlib.PosixPath
    found["builtins", "getattr"] = _member
    found["torch.serialization", "_get_layout"] = torch.serialization._get_layout
    return found


_KNOWN = _known()


def read(content: bytes | memoryview, whose: str) -> Metadata:
    """Raises CheckpointError, beginning with `whose`, for anything but metadata."""
    try:
        metadata = _Unpickler(io.BytesIO(content)).load()
    except Exception as error:  # of bytes that are no pickle: nearly anything
        reason = str(error) or type(error).__name__
        raise CheckpointError(f"{whose}: {reason.partition(os.linesep)[0]}") from error
    if not isinstance(metadata, Metadata) or not isinstance(metadata.storage_data, dict):
        raise CheckpointError(f"{whose}: it is no metadata of torch.distributed.checkpoint")
    return metadata


def files_of(metadata: Metadata) -> Sequence[str]:
    """That its items are in, the same at all ranks in the same order."""
    return sorted({info.relative_path for info in metadata.storage_data.values()})
