"""A state dict as `torch.save` writes it: what pickle makes of it, and the storages that hold its numbers.

The format is torch/serialization.py's (`_save` in 2.13): storages are left out of the pickle by persistent ids
`("storage", type, key, location, number of elements)` and are numbered in the order in which they are met.

PyTorch's own reduction of a tensor takes longer than all the rest. What it gives for a plain tensor of a type is looked at once, and then
written down directly as long as it is of the form that is known; every other tensor goes PyTorch's way.
"""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import pickle
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

PROTOCOL = 2  # what torch.save uses, and what torch.load's restricted unpickler reads

_TypedStorage = torch.storage.TypedStorage
MAIN_MEMORY = torch.device("cpu")
_NO_STORAGES = frozenset(
    [
        *[int, float, bool, type(None), str, bytes, tuple, list, dict, OrderedDict],
        *[torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype, FunctionType, type],
    ]
)


_NAMED = (type, FunctionType, BuiltinFunctionType)


@dataclass
class InMainMemory:
    """Storages of which none is elsewhere."""

    addresses: array[int]
    sizes: array[int]  # in bytes


@dataclass
class Skeleton:
    pickle: bytes
    storages: Sequence[torch.UntypedStorage]  # by their keys in the pickle: "0", "1", …
    located: InMainMemory | None = None  # None: that is not known yet
    met: set[Any] = field(default_factory=set)  # classes and functions in the pickle, if it was just made

    @property
    def bytes(self) -> int:
        """Of all storages together and the pickle: the file is larger by some 200 bytes for each storage."""
        return len(self.pickle) + sum(storage.nbytes() for storage in self.storages)


class _Named:
    """Stands for a storage whose persistent id is known."""

    __slots__ = ("id",)

    def __init__(self, id: tuple):
        self.id = id


class _NoHooks:
    """Stands for the empty OrderedDict in which a tensor's hooks are not saved; each is another one."""

    __slots__ = ()


@dataclass(frozen=True)
class _Rule:
    """How PyTorch reduces plain tensors of one type of number: to `rebuild` with a storage that is said to be of this `kind`."""

    rebuild: Callable
    kind: type

    @classmethod
    def seen_in(cls, tensor: torch.Tensor) -> _Rule | None:
        """None: in another way than ours."""
        reduced: Any = tensor.__reduce_ex__(PROTOCOL)
        rebuild, (storage, *rest), *more = reduced
        if type(storage) is not _TypedStorage or more:
            return None
        if rest != [*_layout(tensor), OrderedDict()] or type(rest[-1]) is not OrderedDict:
            return None
        return cls(rebuild, getattr(torch, storage._pickle_storage_type()))


_rules: dict[torch.dtype, _Rule | None] = {}


def _layout(tensor: torch.Tensor) -> tuple[int, tuple, tuple, bool]:
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad


def _is_plain(tensor: torch.Tensor) -> bool:
    return not (
        tensor.__dict__
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or tensor.is_nested
        or tensor.is_conj()
        or tensor.is_neg()
        or tensor.is_meta
        or tensor._backward_hooks
    )


def taggers_are_torchs_own() -> bool:
    """What a storage's location is called depends on its device alone then."""
    taggers = (tagger for _, tagger, _ in torch.serialization._package_registry)
    return all(
        getattr(getattr(tagger, "func", tagger), "__module__", "") == torch.serialization.__name__
        for tagger in taggers
    )


class Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=PROTOCOL)
        self.storages: list[torch.UntypedStorage] = []
        self._keys: dict[int, str] = {}  # by the identity of a storage
        self._types: dict[tuple[str, int], torch.dtype] = {}  # by the place of its data
        self.met: set[Any] = set()  # classes and functions, and the classes of all other objects that are no containers of data
        self._own_taggers = taggers_are_torchs_own()
        self._reduces = not {torch.Tensor, torch.nn.Parameter} & copyreg.dispatch_table.keys()

    def persistent_id(self, obj: Any) -> tuple | None:
        kind = type(obj)
        if kind is _Named:
            return obj.id
        if kind in _NO_STORAGES:
            return None
        if isinstance(obj, _TypedStorage):
            storage_kind = getattr(torch, obj._pickle_storage_type())
            return self._id(obj._untyped_storage, obj.dtype, storage_kind, obj._size())
        if isinstance(obj, torch.UntypedStorage):
            return self._id(obj, torch.uint8, torch.UntypedStorage, obj.nbytes())
        return None

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _NoHooks:
            return OrderedDict, ()
        if kind is not torch.Tensor:
            self.met.add(obj if isinstance(obj, _NAMED) else kind)
            return NotImplemented
        if not self._reduces or not _is_plain(obj):
            return NotImplemented
        dtype = obj.dtype
        rule = _rules.get(dtype)
        if rule is None:
            if dtype not in _rules:
                _rules[dtype] = _Rule.seen_in(obj)
            return NotImplemented
        storage = obj.untyped_storage()
        elements = storage.nbytes() // obj.element_size()
        named = _Named(self._id(storage, dtype, rule.kind, elements))
        return rule.rebuild, (named, *_layout(obj), _NoHooks())

    def _id(self, storage: Any, dtype: torch.dtype, kind: type, elements: int) -> tuple:
        if self._own_taggers and storage.device == MAIN_MEMORY:
            location = "cpu"
        else:
            location = torch.serialization.location_tag(storage)
        if place := storage.data_ptr():
            known = self._types.setdefault((location, place), dtype)
            if known != dtype:
                raise ValueError(
                    f"two tensors view the same data as {known} and as {dtype}; torch.load could not give both back"
                )
        key = self._keys.get(storage._cdata)
        if key is None:
            key = self._keys[storage._cdata] = str(len(self.storages))
            self.storages.append(storage)
        return ("storage", kind, key, location, elements)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
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
                Pickler(io.BytesIO()).dump(value)
            except Exception:
                name, state, deeper = f"{name}[{key!r}]", value, True
                break
    return name


def pickled(state: Any) -> Skeleton:
    """Anything that torch.save takes. No tensor's data is read or copied.

    Raises what pickle raises for what it cannot write, with the name of the entry, and ValueError for data that is viewed as two types.
    """
    with without_collector():
        return dumped(state, Pickler)


def dumped(state: Any, kind: type[Pickler]) -> Skeleton:
    """The pickler, with all that it has met, is gone when this returns: the collector does not go through it."""
    file = io.BytesIO()
    pickler = kind(file)
    try:
        pickler.dump(state)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise type(error)(f"{_culprit(state)} cannot be saved: {error}") from error
    return Skeleton(file.getvalue(), pickler.storages, met=pickler.met)
