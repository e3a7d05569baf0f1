"""Tensors as PyTorch's FileSystemWriter puts them into a file: each an archive of torch.save, one behind another.

No tensor is copied here, and no pickle is made twice: what torch.save writes of a tensor depends on its type, shape and
strides alone, and a state of ten thousand tensors has a few dozen of those.
"""

from __future__ import annotations

import torch

from ..contents import Part
from ..skeleton import pickled

PICKLES_MAX = 1 << 16  # of a process; beyond that they are begun anew

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_Strided = tuple[torch.dtype, torch.Size, tuple[int, ...], int]  # type, shape, strides, offset


class Archives:
    """Of a checkpointer, from save to save."""

    def __init__(self) -> None:
        self._pickles: dict[_Strided, bytes] = {}

    def part(self, tensor: torch.Tensor) -> Part:
        """Of a file: what torch.load reads is this tensor in main memory, and no more of its storage than it needs.

        The storage is taken as it is, or the bytes of it that are the tensor's; only a tensor with gaps is copied.
        """
        if type(tensor) not in PLAIN or tensor.layout is not torch.strided or tensor.is_neg() or tensor.is_quantized:
            return self._as_it_is(tensor)
        if tensor.dtype.is_complex and tensor.is_conj():
            return self._as_it_is(tensor)
        storage, size = tensor.untyped_storage(), tensor.nbytes
        offset = tensor.storage_offset()
        if storage.nbytes() != size:
            if tensor.is_contiguous():
                begin = offset * tensor.itemsize
                storage = storage[begin : begin + size] if size else torch.UntypedStorage(0)
            else:
                tensor = tensor.detach().clone()
                storage = tensor.untyped_storage()
            offset = 0
        key = (tensor.dtype, tensor.shape, tensor.stride(), offset)
        pickle = self._pickles.get(key)
        if pickle is None:
            pickle = self._pickled(key, size)
        return Part(pickle, (storage,), True)

    def _as_it_is(self, tensor: torch.Tensor) -> Part:
        """Of a tensor that is more than bytes, type, shape and strides."""
        tensor = tensor.detach().cpu()
        if tensor.layout is torch.strided and tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor = tensor.clone()
        return Part.of_state(tensor)

    def _pickled(self, key: _Strided, size: int) -> bytes:
        dtype, shape, stride, offset = key
        memory = torch.UntypedStorage(size)  # never touched
        blank = torch.empty(0, dtype=dtype).set_(memory, offset, shape, stride)
        if len(self._pickles) >= PICKLES_MAX:
            self._pickles.clear()
        made = self._pickles[key] = pickled(blank).pickle
        return made
