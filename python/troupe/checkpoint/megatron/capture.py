"""What Megatron saves, taken from it before it is written.

Megatron's own save_checkpoint is called, with all that it knows of models, optimizers, ranks and names, and three functions
are others while it runs in this thread: `torch.save` keeps what is to go into a file of the step's directory, which is not
made, and the tracker that it writes is a file of a temporary directory. So it can neither overwrite the tracker before the
step is complete, nor delete the step that the tracker named before. All that is put back, whatever happens.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from ..contents import File, Part
from ..library import CheckpointError
from ..changes import below, changed, original

log = logging.getLogger("troupe.checkpoint")

# Arguments of Megatron's that would have it write by itself, or delete what it has written.
MEANWHILE: dict[str, Any] = {"async_save": False, "save_retain_interval": None}


class Capture:
    """Of one save. `place`: where Megatron saves to. `directory`: of the step, there."""

    def __init__(self, megatron: ModuleType, args: Any, place: str, directory: str):
        self.place = os.path.abspath(place)
        self.directory = os.path.join(self.place, directory)
        self._megatron, self._args = megatron, args
        self._before = {name: getattr(args, name) for name in MEANWHILE if hasattr(args, name)}
        self._name = below(self.directory)
        self._thread = threading.get_ident()
        self._states: dict[str, Any] = {}
        self.scratch = ""  # a directory of this process, while Megatron saves

    def keep(self, name: str, state: Any) -> None:
        """A file that torch.save would have written."""
        self._states[name] = state

    def kept(self, name: str) -> Any:
        """That file's state, if it is among those of which `files` has not made files yet."""
        return self._states.get(name)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """While Megatron saves."""
        theirs = self._megatron
        make_directory, tracker, save = (
            theirs.ensure_directory_exists,
            theirs.get_checkpoint_tracker_filename,
            torch.save,
        )

        def ensure_directory_exists(filename: Any, *check_parent: Any, **named: Any) -> None:
            if os.path.abspath(filename) != self.directory and self._name(filename) is None:
                make_directory(filename, *check_parent, **named)

        def keep(state: Any, file: Any, *more: Any, **named: Any) -> None:
            name = self._name(file) if threading.get_ident() == self._thread else None
            if name is None:
                save(state, file, *more, **named)
            else:
                self.keep(name, state)

        def say(message: Any, *_: Any) -> None:
            log.debug("Megatron: %s", message)  # that it is saved: it is not yet

        with contextlib.ExitStack() as meanwhile:
            scratch = meanwhile.enter_context(tempfile.TemporaryDirectory(prefix="troupe-megatron-"))

            def tracker_filename(place: Any) -> str:
                return tracker(scratch if os.path.abspath(place) == self.place else place)

            meanwhile.enter_context(changed(self._args, **MEANWHILE))
            meanwhile.enter_context(
                changed(
                    theirs,
                    ensure_directory_exists=ensure_directory_exists,
                    get_checkpoint_tracker_filename=tracker_filename,
                    print_rank_0=say,
                )
            )
            meanwhile.enter_context(changed(torch, save=keep))
            self.scratch = scratch
            yield

    def files(self) -> list[File]:
        """What was kept until now. Raises what pickle raises for what it cannot write, with the file's name."""
        made, self._states = self._states, {}
        return [self._file(name, state) for name, state in made.items()]

    def _file(self, name: str, state: Any) -> File:
        try:
            with original(self._args, **self._before):  # they are part of the state
                return File(name, [Part.of_state(state)])
        except Exception as error:
            error.args = (f"{os.path.join(self.directory, name)}: {error}", *error.args[1:])
            raise


def require_a_path(path: Any, option: str) -> str:
    """Raises CheckpointError for what is no directory of a file system."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise CheckpointError(f"Megatron's {option} is not given: it says where checkpoints are")
    if "://" in os.fspath(path):
        raise CheckpointError(
            f"Megatron's {option} is {os.fspath(path)}, an object store: Troupe writes to directories; give a mounted one"
        )
    return os.path.abspath(os.fspath(path))
