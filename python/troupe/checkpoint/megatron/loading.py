"""Megatron's own load_checkpoint, and where it reads from.

From memory: it is sent to a temporary directory that looks like the step's, with names and without content; what it then
asks `torch.load` and PyTorch's FileSystemReader for is in memory, here or at another rank. From a disk: it reads what is
there, and what is damaged is named, with rank and step, instead of ending the process as if all were well.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch.distributed.checkpoint import FileSystemReader

from ..changes import below, changed
from ..dcp import metadata as of_step
from ..dcp.reader import read_by_pytorch
from ..dcp.source import DirectorySource, Extent, MemorySource
from ..exchange import listed
from ..files import open_regular, verify
from ..library import CheckpointError
from ..loads import FoundFiles
from ..ranks import Agreement, Rank
from ..saves import number_of
from ..window import Window
from .checkpointer import TRACKER, directory_of
from .failures import Failures, step_of
from .sharded import CONFIG, SUFFIX

# Arguments of Megatron's by which a job begins with something else than its own newest step, or a part of it.
PARTS = {"no_load_optim": "no_save_optim", "no_load_rng": "no_save_rng"}
MEANWHILE: dict[str, Any] = {
    "ckpt_step": None,
    "override_ckpt_iteration": None,
    "finetune": False,
    "pretrained_checkpoint": None,
    "non_persistent_ckpt_type": None,
}
_ARCHIVE = b"PK"


class StepInMemory:
    """`found`: what this rank has of the step; all ranks together have all of it. Every method is collective."""

    def __init__(
        self, megatron: ModuleType, args: Any, ranks: Agreement, found: FoundFiles, place: str, goes_on: bool
    ):
        """`goes_on`: training did, before these workers were started; whatever it began with, it goes on with the whole step."""
        self._goes_on = goes_on
        self._megatron, self._args, self._ranks = megatron, args, ranks
        self._found, self._place = found, place
        self._directory = directory_of(found.step)
        self._sizes = listed(ranks, found.files)[1]
        self._source = MemorySource(ranks, found.step, found.files)
        self._sharded = of_step.NAME in self._sizes
        if not self._sizes:
            raise CheckpointError(
                f"rank {ranks.me.rank}: step {found.step} in memory is a state of another checkpointer's at {place}, and was not saved by Megatron"
            )

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """While Megatron loads from `args.load`."""
        with contextlib.ExitStack() as meanwhile:
            place = meanwhile.enter_context(tempfile.TemporaryDirectory(prefix="troupe-megatron-"))
            directory = os.path.join(place, self._directory)
            failures = Failures(self._ranks.me.rank, place, self._args, f"{self._place} (in memory)")
            files = self._fetched(place)
            self._lay_out(place, directory, files)
            theirs, say = torch.load, getattr(self._megatron, "print_rank_0", print)
            name = below(directory)

            def load(file: Any, *more: Any, **named: Any) -> Any:
                known = name(file)
                if known is None:
                    return theirs(file, *more, **named)
                failures.read = os.fspath(file)
                if known not in files:
                    error = FileNotFoundError(f"step {self._found.step} in memory has no {known}")
                    failures.damaged(file, error)
                    raise error
                named.pop("mmap", None)
                loaded = theirs(Window(files[known]), *more, **named)
                failures.error = None
                return loaded

            def told(message: Any, *more: Any) -> None:
                failures.said = str(message).strip()
                say(str(message).replace(place, f"{self._place} (in memory)"), *more)

            wanted = dict(MEANWHILE, load=place)
            if self._goes_on:  # with all that was saved
                wanted |= {load: getattr(self._args, save, None) for load, save in PARTS.items()}
            if not self._sharded:
                wanted["auto_detect_ckpt_format"] = False
            meanwhile.enter_context(changed(self._args, **wanted))
            meanwhile.enter_context(changed(self._megatron, print_rank_0=told))
            meanwhile.enter_context(changed(torch, load=load))
            meanwhile.enter_context(read_by_pytorch(directory, lambda _: self._source, list(self._sizes)))
            meanwhile.enter_context(failures())
            yield

    def _fetched(self, place: str) -> dict[str, memoryview]:
        """The files that this rank's Megatron opens as a whole."""
        mine, reason = self._wanted(place)
        self._ranks.require(reason)
        extents = {name: Extent(name, 0, self._sizes[name]) for name in mine}
        found = self._source.fetch([*extents.values()], list(self._sizes))
        return {name: found[extent] for name, extent in extents.items()}

    def _wanted(self, place: str) -> tuple[list[str], str]:
        """Names; or why there are none. Of the ranks whose model is the same, one has it and one reads the optimizer's file."""
        if self._sharded:
            return [name for name in self._sizes if not name.endswith(SUFFIX)], ""
        whole = self._megatron.get_checkpoint_name(place, self._found.step)
        model = os.path.relpath(whole, os.path.join(place, self._directory))
        directory = os.path.dirname(model)
        alike = [row[0] for row in self._ranks.gather([number_of(directory)])]
        first = alike.index(alike[self._ranks.me.rank]) == self._ranks.me.rank
        if model not in self._sizes:
            return [], (
                f"step {self._found.step} in memory has no {model}: it was saved with another tensor, pipeline or expert "
                "parallel size, for which Megatron's format torch has no use"
            )
        others = (name for name in self._sizes if os.path.dirname(name) == directory and name != model)
        return [model, *(name for name in others if first or name in self._found.files)], ""

    def _lay_out(self, place: str, directory: str, files: Mapping[str, memoryview]) -> None:
        os.makedirs(directory if self._sharded else os.path.join(directory, "mp_rank_00"))
        for name, content in files.items():
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                if name in (of_step.NAME, CONFIG):
                    file.write(content)
        with open(os.path.join(place, TRACKER), "w") as tracker:
            tracker.write(str(self._found.step))


class StepOnDisk:
    """Of which Megatron reads what it likes, and what it finds damaged is said."""

    def __init__(self, megatron: ModuleType, args: Any, place: str, me: Rank):
        self._megatron, self._place, self._me = megatron, place, me
        self._name = below(place)
        self._failures = Failures(me.rank, place, args)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """While Megatron loads. Raises CheckpointError for what it could not load; Megatron itself would exit, with 0."""
        theirs, say = torch.load, getattr(self._megatron, "print_rank_0", print)
        failures = self._failures

        def load(file: Any, *more: Any, **named: Any) -> Any:
            if self._name(file) is None:
                return theirs(file, *more, **named)
            failures.read = os.fspath(file)
            try:
                self._verify(file)
                loaded = theirs(file, *more, **named)
                failures.error = None
                return loaded
            except (ModuleNotFoundError, FileNotFoundError) as error:  # Megatron tries something else
                failures.damaged(file, error)
                raise
            except Exception as error:
                raise failures.damaged(file, error) from error

        def told(message: Any, *more: Any) -> None:
            failures.said = str(message).strip()
            say(message, *more)

        with contextlib.ExitStack() as meanwhile:
            meanwhile.enter_context(changed(torch, load=load))
            meanwhile.enter_context(changed(self._megatron, print_rank_0=told))
            meanwhile.enter_context(read_by_pytorch(self._place, self._source_at))
            meanwhile.enter_context(self._metadata_named())
            meanwhile.enter_context(failures())
            yield

    def _metadata_named(self) -> contextlib.AbstractContextManager[None]:
        """PyTorch's reader says nothing of the file that it could not read."""
        theirs, failures = FileSystemReader.read_metadata, self._failures

        def read_metadata(reader: Any, *args: Any, **kwargs: Any) -> Any:  # PyTorch looks for these names
            try:
                found = theirs(reader, *args, **kwargs)
            except Exception as error:
                if not failures.error:
                    failures.damaged(os.path.join(reader.path, of_step.NAME), error)
                raise
            failures.error = None
            return found

        return changed(FileSystemReader, read_metadata=read_metadata)

    def _source_at(self, directory: str) -> DirectorySource:
        return DirectorySource(directory, step_of(directory), self._me)

    def _verify(self, path: str | os.PathLike) -> None:
        with open_regular(os.fspath(path)) as file:
            if file.read(len(_ARCHIVE)) in (_ARCHIVE, b""):
                verify(file.fileno())
