"""Files of safetensors as parts of a snapshot: a header, and the tensors' own memory behind it.

    u64 length | header, JSON, padded with blanks to a multiple of 8 | the tensors, byte behind byte

`save_file` of the library turns every tensor into bytes before it writes one. Here only the header is made, and a save copies the
tensors from where they are. The library itself is asked, once, for what decides the bytes: names of types, and their order.
"""

from __future__ import annotations

import functools
import json
import mmap
import struct
import sys
from collections.abc import Mapping
from typing import Any

import torch

from ..contents import Part

_LENGTH = struct.Struct("<Q")
_TYPES = (
    *("bool", "uint8", "int8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32"),
    *("float32", "complex64", "float64", "int64", "uint64"),
    *("float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
_PLAIN = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor)}


def header_of(file: bytes | memoryview | mmap.mmap) -> dict[str, Any]:
    """Raises ValueError for what is no file of safetensors, or one that was cut short."""
    if len(file) < _LENGTH.size:
        raise ValueError(f"it has {len(file)} bytes, fewer than the length of a header has")
    (length,) = _LENGTH.unpack(file[: _LENGTH.size])
    if length > len(file) - _LENGTH.size:
        raise ValueError(f"its header would have {length} bytes, and the file has {len(file)}")
    try:
        header = json.loads(bytes(file[_LENGTH.size : _LENGTH.size + length]))
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError("its header is not that of safetensors") from error
    expected = _LENGTH.size + length + max(ends, default=0)
    if expected != len(file):
        raise ValueError(f"it has {len(file)} bytes, and its header speaks of {expected}")
    return header


def part_of(tensors: Any, metadata: Mapping[str, str] | None) -> Part | None:
    """What `save_file` writes, byte for byte. None where it would do something else: it refuses tensors that share memory or are not
    contiguous, and there may be types that are not known here."""
    if sys.byteorder != "little" or not isinstance(tensors, Mapping) or not _plain(tensors):
        return None
    order = sorted(tensors.items(), key=lambda row: (_kinds()[row[1].dtype][0], row[0].encode()))
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    end, storages = 0, []
    for name, tensor in order:
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _kinds()[tensor.dtype][1],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        if end > begin:
            storages.append(_memory_of(tensor))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return Part(_LENGTH.pack(len(text)) + text, storages)


def _plain(tensors: Mapping[Any, Any]) -> bool:
    places = []
    for name, tensor in tensors.items():
        if (
            type(tensor) not in _PLAIN
            or not isinstance(name, str)
            or name == "__metadata__"
            or tensor.dtype not in _kinds()
            or tensor.layout is not torch.strided
            or tensor.is_meta
            or tensor.is_conj()
            or tensor.is_neg()
            or not tensor.is_contiguous()
        ):
            return False
        if size := tensor.numel() * tensor.element_size():
            places.append((str(tensor.device), tensor.data_ptr(), size))
    places.sort()
    return all(
        device != next_one or begin + size <= after
        for (device, begin, size), (next_one, after, _) in zip(places, places[1:], strict=False)
    )


def _memory_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    storage = tensor.untyped_storage()
    begin = tensor.storage_offset() * tensor.element_size()
    size = tensor.numel() * tensor.element_size()
    # A slice of a storage is the same memory, and keeps it.
    return storage if storage.nbytes() == size else storage[begin : begin + size]


@functools.cache
def _kinds() -> dict[torch.dtype, tuple[int, str]]:
    """Of each type that the installed library knows: its place in a file, and what it is called there."""
    from safetensors.torch import save

    samples = {}
    for name in _TYPES:
        if (dtype := getattr(torch, name, None)) is None:
            continue
        sample = {name: torch.zeros(8, dtype=torch.uint8).view(dtype)}
        try:
            save(sample)
        except Exception:  # whatever a release raises for a type that it does not know
            continue
        samples.update(sample)
    rows = header_of(save(samples)).items()
    placed = sorted((row["data_offsets"][0], name, row["dtype"]) for name, row in rows)
    return {getattr(torch, name): (at, kind) for at, (_, name, kind) in enumerate(placed)}
