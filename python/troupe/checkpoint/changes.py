"""What is put in the place of something of a framework's or PyTorch's while a call lasts, and is put back whatever happens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

_NOTHING = object()


@contextlib.contextmanager
def changed(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes that `owner` has are these meanwhile; those that it does not have are left out. One that the call itself has set
    to something else stays what it is then."""
    before = {name: getattr(owner, name) for name in values if hasattr(owner, name)}
    try:
        for name in before:
            setattr(owner, name, values[name])
        yield
    finally:
        for name, value in before.items():
            if getattr(owner, name, _NOTHING) is values[name]:
                setattr(owner, name, value)


@contextlib.contextmanager
def shadowed(owner: Any, **values: Any) -> Iterator[None]:
    """Methods of this object are these meanwhile, and those of its class again then."""
    try:
        vars(owner).update(values)
        yield
    finally:
        for name in values:
            vars(owner).pop(name, None)


@contextlib.contextmanager
def original(owner: Any, **values: Any) -> Iterator[None]:
    """In the midst of `changed`: as it was before, for a moment."""
    meanwhile = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in meanwhile.items():
            setattr(owner, name, value)


def below(directory: str) -> Callable[[Any], str | None]:
    """A function that says what a path is called below `directory`; None for all else."""
    prefix = os.path.abspath(directory) + os.sep

    def name(path: Any) -> str | None:
        if not isinstance(path, (str, os.PathLike)):
            return None
        whole = os.path.abspath(os.fspath(path))
        if isinstance(whole, bytes) or not whole.startswith(prefix):
            return None
        return whole[len(prefix) :]

    return name
