"""What a framework writes into a checkpoint's directory, as files of a snapshot.

A framework's own code decides which files there are, and what is in them; it changes from release to release, users override it. So it
runs as it is, into a private directory. Two functions that all of it ends in are replaced meanwhile, for this thread and that
directory alone: `torch.save` and safetensors' `save_file` note large tensors instead of turning them into bytes. What comes
there by other ways is read back as bytes: slower, never wrong.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from ..contents import File, Part
from .safetensors import part_of

SMALL = 64 << 10  # bytes of tensors; a file with fewer is written by torch.save itself
NOTE_BYTES = 64
FORMAT = "_use_new_zipfile_serialization"  # which DeepSpeed says; torch.load reads either


class Capture:
    """`directory`: where the framework writes. What it holds at the end of `noting` is `files()`."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="troupe-capture-")).resolve()
        self._noted: dict[bytes, list[Part]] = {}  # by what stands in the file instead

    def close(self) -> None:
        self._noted.clear()
        shutil.rmtree(self.root, ignore_errors=True)

    @contextlib.contextmanager
    def noting(self, large: bool = True) -> Iterator[None]:
        """Nothing stays replaced, whatever is raised inside. `large`: large tensors are noted; else all is written as bytes."""
        if not large:
            yield
            return
        thread = threading.get_ident()
        native_save = torch.save

        def save(obj: Any, f: Any, *more: Any, **named: Any) -> Any:
            others = more or set(named) - {FORMAT}
            if others or threading.get_ident() != thread or not self.is_ours(f):
                return native_save(obj, f, *more, **named)
            try:
                part = Part.of_state(obj)
            except Exception:  # what torch.save says to it is what its caller expects
                return native_save(obj, f, **named)
            if sum(storage.nbytes() for storage in part.storages) < SMALL:
                return native_save(obj, f, **named)
            return self.note(f, [part])

        torch.save = save
        with contextlib.ExitStack() as undone:
            undone.callback(setattr, torch, "save", native_save)
            undone.enter_context(noting_tensors(lambda *what: threading.get_ident() == thread and self._note_tensors(*what)))
            yield

    def _note_tensors(self, tensors: Any, path: Any, metadata: Any) -> bool:
        part = part_of(tensors, metadata) if self.is_ours(path) else None
        if part:
            self.note(path, [part])
        return part is not None

    def is_ours(self, path: Any) -> bool:
        """Whether it is the path of a file or directory below `root`."""
        if not isinstance(path, (str, os.PathLike)):
            return False
        return Path(os.path.realpath(path)).is_relative_to(self.root)

    def note(self, path: str | os.PathLike, parts: list[Part]) -> None:
        """The file at `path` has these parts, which stay as they are until they are saved."""
        # What stands there says what it is, wherever the file is moved or copied to.
        note = f"troupe {uuid.uuid4().hex}".encode().ljust(NOTE_BYTES)
        self._noted[note] = parts
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(note)

    def files(self, below: str) -> list[File]:
        """Those in a directory of the root, by their names there, in the order of names."""
        directory = self.root / below
        found = []
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            content = path.read_bytes()
            found.append(File(str(path.relative_to(directory)), self._noted.get(content) or [Part(content)]))
        return found


def is_plain(file: File) -> bool:
    """Whether its bytes are all here."""
    return all(not part.archive and not part.storages for part in file.parts)


def bytes_of(file: File) -> bytes:
    return b"".join(part.head for part in file.parts)


@contextlib.contextmanager
def noting_tensors(note: Callable[[Any, Any, Any], bool]) -> Iterator[None]:
    """Meanwhile `note(tensors, path, metadata)` says of each file that safetensors is to write whether it has taken that."""
    try:
        from safetensors.torch import save_file as native
    except ImportError:
        yield
        return

    def save_file(tensors: Any, filename: Any, metadata: Any = None) -> Any:
        return None if note(tensors, filename, metadata) else native(tensors, filename, metadata)

    with contextlib.ExitStack() as undone:
        for module, name in _places_of(native):
            undone.callback(setattr, module, name, native)
            setattr(module, name, save_file)
        yield


_known: tuple[int, list[tuple[Any, str]]] = (0, [])  # for so many modules


def _places_of(function: Callable) -> list[tuple[Any, str]]:
    """Modules that have it, and under which name: `from safetensors.torch import save_file as …` has made copies."""
    global _known
    if _known[0] != len(sys.modules):
        found = [
            (module, name)
            for module in list(sys.modules.values())
            if isinstance(module, type(sys))
            for name, value in list(vars(module).items())
            if value is function
        ]
        _known = (len(sys.modules), found)
    return _known[1]
