"""What a pickle says of tensors, and where their data is, read for thousands of them at once.

What goes wrong without this: asked one by one, by properties that each make an object of Python, thousands of tensors take a third as
long as copying them does.

Contract: two lists of tensors with equal `compared` are written alike, but for what they hold and for what outline.py compares itself.
PyTorch's library has functions of C for most of it, which the native library calls for many tensors at once (`_Native`); a PyTorch that
lacks one, or says something else by them than by its properties, is asked in Python (`_Asked`).
"""

from __future__ import annotations

import ctypes
import functools
import os
from array import array
from collections.abc import Iterable
from ctypes import POINTER, c_int32, c_int64, c_size_t, c_void_p
from itertools import chain
from operator import attrgetter
from typing import Any

import torch

from . import library
from .skeleton import MAIN_MEMORY

BLOCK = 256  # tensors, of which all is read before the next ones are: their memory is at hand then

_QUANTISED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}
_COMPLEX = {torch.complex32, torch.complex64, torch.complex128}

_flat = chain.from_iterable


def in_order(values: array[int], order: array[int], more: array[int] | None = None) -> array[int]:
    """values[order[0]] + more[0], values[order[1]] + more[1], …"""
    found = array("Q", bytes(8 * len(order)))
    begins = [each.buffer_info()[0] for each in (values, order)]
    begins.append(more.buffer_info()[0] if more else 0)
    library.load().troupe_in_order(*begins, len(order), found.buffer_info()[0])
    return found


class NotPlain(Exception):
    """A tensor is more than bytes, type, shape and strides."""


class Facts:
    """Of some tensors. Raises NotPlain."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self.tensors = tensors
        self.requires_grad: list[bool] = []
        self.storages: list[torch.UntypedStorage] = []  # of each tensor
        self.identities = array("Q")  # of the storages
        self.places = array("Q")  # of their data
        self._described = _Native() if _functions() else _Asked()
        try:
            for begin in range(0, len(tensors), BLOCK):
                self._read(tensors[begin : begin + BLOCK])
        except RuntimeError as error:  # sparse, nested, or of a device whose tensors have no storages
            raise NotPlain from error
        self.elsewhere = self._described.judge(tensors)
        self.compared = [self.requires_grad, *self._described.compared()]

    def _read(self, tensors: list[torch.Tensor]) -> None:
        if any(map(attrgetter("__dict__"), tensors)) or any(map(torch.Tensor.is_neg, tensors)):
            raise NotPlain
        storages = list(map(torch.Tensor.untyped_storage, tensors))
        self.storages += storages
        self.requires_grad += map(attrgetter("requires_grad"), tensors)
        self.identities.extend(map(attrgetter("_cdata"), storages))
        self.places.extend(map(torch.UntypedStorage.data_ptr, storages))
        self._described.read(tensors, storages)


class _Asked:
    """By properties."""

    def __init__(self) -> None:
        self._layouts: list[torch.layout] = []
        self._dtypes: list[torch.dtype] = []
        self._devices: list[torch.device] = []
        self._numbers = [array("q") for _ in range(5)]

    def read(self, tensors: list[torch.Tensor], storages: list[torch.UntypedStorage]) -> None:
        dimensions, shapes, strides, offsets, sizes = self._numbers
        self._layouts += map(attrgetter("layout"), tensors)
        self._dtypes += map(attrgetter("dtype"), tensors)
        self._devices += map(attrgetter("device"), tensors)
        seen = list(map(attrgetter("shape"), tensors))
        dimensions.extend(map(len, seen))
        shapes.extend(_flat(seen))
        strides.extend(_flat(map(torch.Tensor.stride, tensors)))
        offsets.extend(map(torch.Tensor.storage_offset, tensors))
        sizes.extend(map(torch.UntypedStorage.nbytes, storages))

    def judge(self, tensors: list[torch.Tensor]) -> bool:
        kinds = set(zip(self._layouts, self._dtypes, self._devices, strict=True))
        return _judged(kinds, tensors)

    def compared(self) -> list[Any]:
        return [self._dtypes, self._devices, *self._numbers]


class _Native:
    """By PyTorch's functions of C."""

    def __init__(self) -> None:
        self._kinds = array("q")  # of each tensor one number for its layout, type and device
        self._numbers = array("q")

    def read(self, tensors: list[torch.Tensor], storages: list[torch.UntypedStorage]) -> None:
        del storages
        functions = _functions()
        assert functions
        kinds, numbers = functions.described(tensors)
        self._kinds += kinds
        self._numbers += numbers

    def judge(self, tensors: list[torch.Tensor]) -> bool:
        first = (tensors[self._kinds.index(kind)] for kind in set(self._kinds))
        return _judged({(one.layout, one.dtype, one.device) for one in first}, tensors)

    def compared(self) -> list[Any]:
        return [self._kinds, self._numbers]


def _judged(kinds: Iterable[tuple[torch.layout, torch.dtype, torch.device]], tensors: list[torch.Tensor]) -> bool:
    """Whether any is not in main memory. Raises NotPlain."""
    dtypes = {dtype for _, dtype, _ in kinds}
    if any(layout is not torch.strided for layout, *_ in kinds) or dtypes & _QUANTISED:
        raise NotPlain
    if dtypes & _COMPLEX and any(map(torch.Tensor.is_conj, tensors)):
        raise NotPlain
    return any(device != MAIN_MEMORY for *_, device in kinds)


class _RawFunctions(ctypes.Structure):
    """troupe_tensor_functions"""

    _fields_ = [
        *((name, c_void_p) for name in ("dtype", "layout", "device_type", "device_index", "dimensions")),
        *((name, c_void_p) for name in ("offset", "storage_bytes", "sizes", "strides")),
        ("strided", c_int32),
    ]


_NAMES = ("dtype", "layout", "device_type", "device_index", "dim", "storage_offset", "storage_size", "sizes", "strides")


class _Functions:
    """PyTorch's. Raises OSError or AttributeError where they are not."""

    def __init__(self) -> None:
        folder = os.path.join(os.path.dirname(torch.__file__), "lib")
        torchs = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))
        found = [ctypes.cast(getattr(torchs, f"aoti_torch_get_{name}"), c_void_p) for name in _NAMES]
        self._raw = _RawFunctions(*found, torchs.aoti_torch_layout_strided())
        # The interpreter's lock stays: no thread changes a tensor meanwhile, or takes the lock for so short a call.
        own = ctypes.PyDLL(library.load()._name)
        self._describe = own.troupe_describe_tensors
        self._describe.restype = c_int64
        self._describe.argtypes = [POINTER(_RawFunctions), c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]
        self._room = 0

    def described(self, tensors: list[torch.Tensor]) -> tuple[array[int], array[int]]:
        """Kinds and numbers, as troupe_describe_tensors says. Raises RuntimeError where PyTorch does not say them."""
        addresses = array("Q", map(attrgetter("_cdata"), tensors))
        count = len(addresses)
        kinds = array("q", bytes(8 * count))
        while True:
            numbers = array("q", bytes(8 * self._room))
            used = self._describe(
                *(self._raw, addresses.buffer_info()[0], count, kinds.buffer_info()[0]),
                *(numbers.buffer_info()[0], self._room),
            )
            if used < 0:
                raise RuntimeError("PyTorch cannot describe a tensor")
            if used <= self._room:
                del numbers[used:]
                return kinds, numbers
            self._room = used


@functools.cache
def _functions() -> _Functions | None:
    """None: PyTorch has none, or not those that are known; it is asked in Python then."""
    try:
        functions = _Functions()
    except (OSError, AttributeError):
        return None
    return functions if _says_what_python_says(functions) else None


def _says_what_python_says(functions: _Functions) -> bool:
    with torch.no_grad():
        whole = torch.zeros(60, dtype=torch.float64, device="cpu")
        some = [whole.as_strided((2, 3, 4), (17, 5, 1), 7), whole[:0], whole.to(torch.int8), whole[3]]
    kinds, numbers = functions.described(some)
    expected = array("q")
    for one in some:
        expected.extend([one.dim(), one.storage_offset(), one.untyped_storage().nbytes()])
        expected.extend([*one.shape, *one.stride()])
    same_kind = [kinds[0] == one for one in kinds]
    return numbers == expected and same_kind == [True, True, False, True]
