"""Megatron's distributed formats: torch_dist, and torch_dcp and fsdp_dtensor, which are PyTorch's own.

In torch_dist Megatron decides which rank writes which tensors to which file, and hands files and tensors to a writer of its
own, which forks processes. Here the files become those of the snapshot, with the bytes that PyTorch's reader expects, and
the writer is told where everything lies. `.metadata`, which needs to know that of all ranks, is the snapshot's last file.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import logging
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import WriteResult

from ..contents import File, Files, Part
from ..dcp import metadata as of_step
from ..dcp.writer import FailedFiles, SnapshotWriter
from ..library import CheckpointError
from ..retention import StorageType
from ..changes import below, changed
from ..dcp.places import Places, places_of
from .again import CONTENT, NotKnown, Plan, State
from .capture import Capture
from .checkpointer import MegatronCheckpointer

log = logging.getLogger("troupe.checkpoint")

CONFIG = "metadata.json"
COMMON = "common.pt"
SUFFIX = ".distcp"
KNOWN = "0.11 to 0.19"
_DIST_CHECKPOINTING = "megatron.core.dist_checkpointing"
_OF_WRITER = ("prepare_write_data", "retrieve_write_results", "finish")

# Bytes of an item in metadata: where it lies in its tensor and in its file.
_ROOM_LEAST, _ITEM, _DIMENSION, _NAMES = 1 << 16, 768, 96, 2


_NOT_KEPT = "step {} is not saved; the log of troupe.checkpoint says why"


class NotKept(CheckpointError):
    """Raised at all ranks: the log says why."""


class ShardedSave:
    """Of one step, whatever its format. `done`: whether it was kept, by now."""

    def __init__(
        self,
        checkpointer: MegatronCheckpointer,
        capture: Capture,
        step: int,
        storage_type: StorageType,
    ):
        self._checkpointer, self._capture = checkpointer, capture
        self._step, self._storage_type = step, storage_type
        self._name = below(capture.directory)
        self._config = b""
        self._unknown = ""
        self._resolved: dict[Any, torch.Tensor] = {}  # what Megatron's planner has, of which its writer may make copies
        self._noted: dict[str, Any] = {}  # for Plan.of
        self.done = False

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """While Megatron saves."""
        with contextlib.ExitStack() as meanwhile:
            meanwhile.enter_context(changed(dcp, FileSystemWriter=self._writer(dcp.FileSystemWriter)))
            with contextlib.suppress(ModuleNotFoundError):  # before megatron-core there was the format torch alone
                core = importlib.import_module(_DIST_CHECKPOINTING)
                meanwhile.enter_context(changed(core, save=self._save(core.save)))
                self._unknown = self._replace_writer(meanwhile)
            yield

    # ---- torch_dist ----

    def _replace_writer(self, meanwhile: contextlib.ExitStack) -> str:
        """Says what there is not of that which is replaced."""
        try:
            of_torch = importlib.import_module(_DIST_CHECKPOINTING + ".strategies.torch")
            of_writer = importlib.import_module(_DIST_CHECKPOINTING + ".strategies.filesystem_async")
            strategy, writer = of_torch.TorchDistSaveShardedStrategy, of_writer.FileSystemWriterAsync
            request = self._request(strategy._get_save_and_finalize_callbacks)
            lacking = [name for name in _OF_WRITER if not hasattr(writer, name)]
        except (ModuleNotFoundError, AttributeError) as error:
            return str(error)
        # By it Megatron's writer hears from processes that it has forked; it is a process of its own, and here are none.
        meanwhile.enter_context(changed(of_writer, _get_write_results_queue=lambda *_: None))
        meanwhile.enter_context(changed(strategy, _get_save_and_finalize_callbacks=request))
        if not lacking:
            meanwhile.enter_context(changed(writer, prepare_write_data=self._prepare(writer.prepare_write_data)))
        return f"{writer.__name__} has no {lacking[0]}" if lacking else ""

    def _save(self, theirs: Any) -> Any:
        """In the place of dist_checkpointing.save: what it writes by itself goes to a directory of this process."""
        serialization = importlib.import_module(theirs.__module__)

        def save(*positional: Any, **named: Any) -> Any:
            call = inspect.signature(theirs).bind(*positional, **named)
            directory = call.arguments["checkpoint_dir"]
            if os.path.abspath(directory) != self._capture.directory:
                if self._name(directory) is not None:
                    raise CheckpointError(
                        f"{directory}: a distributed checkpoint inside of another (as ModelOpt's) cannot be kept in memory: "
                        "save this step by Megatron's own save_checkpoint"
                    )
                return theirs(*positional, **named)
            if self._unknown:
                raise CheckpointError(
                    f"this megatron-core writes distributed checkpoints in a way that Troupe does not know ({self._unknown}): known "
                    f"are {KNOWN}. Save by Megatron's own save_checkpoint, or with --ckpt-format torch"
                )
            self._config = self._config_of(serialization, call.arguments.get("sharded_strategy"))
            state = self._state_of(serialization, call.arguments)
            plan = self._checkpointer.plan
            fits = plan is not None and state is not None and plan.fits(state, self._config)
            if all(row[0] for row in self._checkpointer.ranks.gather([fits])):
                assert plan and state
                return self._save_again(plan, state)
            self._checkpointer.plan = None
            redirected = os.path.join(self._capture.scratch, os.path.basename(self._capture.directory))
            os.mkdir(redirected)
            call.arguments["checkpoint_dir"] = redirected
            common = below(redirected)
            keep_here = torch.save

            def keep(state: Any, file: Any, *more: Any, **options: Any) -> None:
                name = common(file)
                if name is None:
                    keep_here(state, file, *more, **options)
                else:
                    self._capture.keep(name, state)

            with changed(torch, save=keep):
                result = theirs(*call.args, **call.kwargs)
            if not self.done:
                raise CheckpointError(
                    f"step {self._step}: its tensors went to a writer of megatron-core's that Troupe does not know "
                    f"({self._config.decode()}): save with --ckpt-format torch_dist, or torch"
                )
            self._require_config(redirected)
            if state is not None:
                with contextlib.suppress(NotKnown):
                    self._checkpointer.plan = Plan.of(state, self._config, **self._noted)
            return result

        return save

    @staticmethod
    def _state_of(serialization: Any, arguments: dict[str, Any]) -> State | None:
        """None: of a state that is of no use for the next save, or of another megatron-core, each save is planned."""
        try:
            return State(serialization, arguments["sharded_state_dict"], arguments.get(CONTENT))
        except Exception as error:  # what is wrong with a state Megatron's own save says
            log.debug("the next save is planned anew: %s", error)
            return None

    def _save_again(self, plan: Plan, state: State) -> None:
        sharded: list[File] = []
        try:
            if plan.common:
                self._capture.keep(COMMON, state.common)
            made = self._capture.files()
            if torch.distributed.get_rank() == 0:
                made.append(File.of_bytes(CONFIG, self._config))
            sharded = plan.files(state)
            files = Files(made + sharded, plan.places.last_file_room)
        except Exception as error:
            files = FailedFiles(error)
        self._keep(files)
        mine = places_of([part for file in sharded for part in file.parts])
        if not self._checkpointer.described(self._step, plan.places, mine):
            raise NotKept(_NOT_KEPT.format(self._step))
        self.done = True

    def _keep(self, files: Files) -> None:
        if not self._checkpointer.save_files(self._step, files, self._storage_type):
            raise NotKept(_NOT_KEPT.format(self._step))

    def _config_of(self, serialization: Any, strategy: Any) -> bytes:
        """What `metadata.json` will be, since the snapshot has it before Megatron writes it."""
        if strategy is None:
            strategy = serialization.get_default_save_sharded_strategy()
        backend, version = strategy if isinstance(strategy, tuple) else (strategy.backend, strategy.version)
        serialization.save_config(serialization.CheckpointingConfig(backend, version), self._capture.scratch)
        with open(os.path.join(self._capture.scratch, CONFIG), "rb") as file:
            return file.read()

    def _require_config(self, directory: str) -> None:
        try:
            with open(os.path.join(directory, CONFIG), "rb") as file:
                written = file.read()
        except FileNotFoundError:  # at all ranks but one
            return
        if written != self._config:
            raise CheckpointError(
                f"{CONFIG} of step {self._step} is {written!r}, and {self._config!r} was expected: this megatron-core "
                "is none that Troupe knows"
            )

    def _request(self, theirs: Any) -> Any:
        """In the place of the strategy's method that says what is to be written, and what comes after it."""

        def callbacks(strategy: Any, writer: Any, planned: Sequence[Any]) -> Any:
            request = theirs(strategy, writer, planned)
            if not os.path.abspath(writer.path).startswith(self._capture.scratch + os.sep):
                return request
            results: list[WriteResult] = []
            writer.retrieve_write_results = lambda: results
            writer.finish = self._finish
            of_all_ranks = planned[1]

            def write() -> None:
                results.extend(self._kept(writer.write_buckets or (), of_all_ranks))

            return request._replace(async_fn=write, async_fn_args=(), preload_fn=None)

        return callbacks

    def _prepare(self, theirs: Any) -> Any:
        """In the place of the writer's method that collects what it writes, with copies of tensors that are parts of others."""

        def prepare_write_data(writer: Any, plan: Any, planner: Any) -> None:
            theirs(writer, plan, planner)
            for _, _, (_, tensors) in writer.write_buckets or ():
                self._resolved.update((item.index, planner.resolve_data(item)) for item, _ in tensors)

        return prepare_write_data

    def _kept(self, buckets: Sequence[Any], metadata: Metadata | None) -> list[WriteResult]:
        placed: list[tuple[Any, str, Part]] = []
        sharded: list[File] = []
        resolved: list[Any] = []
        common = self._capture.kept(COMMON)
        try:
            made = self._capture.files()
            if torch.distributed.get_rank() == 0:
                made.append(File.of_bytes(CONFIG, self._config))
            for _, name, (objects, tensors) in buckets:
                parts = [(item, name, Part(data.getvalue())) for item, data in objects]
                own = [self._resolved.get(item.index, data) for item, data in tensors]
                parts += [(item, name, self._checkpointer.archives.part(data)) for (item, _), data in zip(tensors, own, strict=True)]
                sharded.append(File(name, [part for _, _, part in parts]))
                resolved += [item.index.fqn for item, _ in objects] + own
                placed += parts
            files = Files(made + sharded, room_for(metadata) if metadata is not None else 0)
        except Exception as error:
            files = FailedFiles(error)
        self._keep(files)
        self.done = True
        places = Places(places_of([part for *_, part in placed]), None, [], [], b"")
        self._noted = {"common": common, "files": sharded, "resolved": resolved, "places": places}
        return [
            WriteResult(item.index, part.size, of_step.StorageInfo(name, part.begin, part.size))
            for item, name, part in placed
        ]

    def _finish(self, metadata: Metadata, results: Sequence[Sequence[WriteResult]]) -> None:
        rows = [[(one.index, one.storage_data) for one in of_rank] for of_rank in results]
        content = self._checkpointer.written(metadata, dict(itertools.chain.from_iterable(rows)))
        self._checkpointer.last_file(of_step.NAME, content)
        places = self._noted["places"]
        places.metadata, places.content = metadata, content
        places.of_ranks = [[(info.relative_path, index) for index, info in row] for row in rows]
        places.places_of_ranks = [[n for _, info in row for n in (info.offset, info.length)] for row in rows]

    # ---- torch_dcp, fsdp_dtensor ----

    def _writer(self, theirs: Any) -> Any:
        def writer(path: Any, *more: Any, **named: Any) -> Any:
            if os.path.abspath(path) != self._capture.directory:
                return theirs(path, *more, **named)
            return _DcpWriter(self, self._checkpointer, self._step, self._storage_type)

        return writer


class _DcpWriter(SnapshotWriter):
    """As Megatron makes them for each save: with the step's directory for a name."""

    def __init__(self, save: ShardedSave, *arguments: Any):
        super().__init__(*arguments)
        self._save = save

    def _keep(self, files: Files) -> None:
        super()._keep(files)
        self._save.done = True


def room_for(metadata: Metadata) -> int:
    """Bytes that suffice for this metadata when it says where everything lies."""
    room = _ROOM_LEAST + len(pickle.dumps(metadata))
    for name, what in metadata.state_dict_metadata.items():
        chunks = getattr(what, "chunks", ())
        dimensions = len(chunks[0].offsets) if chunks else 0
        room += max(1, len(chunks)) * (_ITEM + _DIMENSION * dimensions + _NAMES * len(name.encode()))
    return room
