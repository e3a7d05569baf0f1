"""What torch.distributed.checkpoint reads from: a step in memory, at whichever ranks, or on the disk."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed._shard._utils import narrow_tensor_by_index
from torch.distributed.checkpoint import FileSystemReader, StorageReader
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from ..changes import changed
from ..library import CheckpointError
from ..window import Window
from . import metadata as of_step
from .source import Extent, StepSource

if TYPE_CHECKING:
    from .checkpointer import DcpCheckpointer


class SnapshotReader(StorageReader):
    """`DcpCheckpointer.get_storage_reader` makes it. Every rank of the job takes part in a load.

    It reads one step until the next save: the newest, or with the `checkpoint_id` of a load the step in that directory, which may be one of
    PyTorch's FileSystemWriter. Another world size and another sharding are PyTorch's matter: each rank reads what it needs.
    """

    def __init__(self, checkpointer: DcpCheckpointer, resume_path: str | os.PathLike = ""):
        super().__init__()
        self._checkpointer, self._resume_path = checkpointer, resume_path
        self._path: str | os.PathLike | None = None
        self._source: StepSource | None = None
        self._metadata: Metadata | None = None
        checkpointer.readers.add(self)

    @property
    def step(self) -> int | None:
        """That is read, where it is known; after `found`, or in a load."""
        return self._source.step if self._source else None

    def found(self) -> bool:
        """Whether there is a step to read. Collective."""
        if self._source is None:
            self._source = (
                self._checkpointer.newest_source(self._resume_path)
                if self._path is None
                else self._checkpointer.source_at(self._path)
            )
        return self._source is not None

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id:
            self.close()
            self._path = checkpoint_id

    def read_metadata(self) -> Metadata:
        if not self.found():
            raise CheckpointError(f"there is no step to load: none in memory, none at {self._checkpointer.place}")
        assert self._source
        if self._metadata is None:
            content = self._source.metadata()
            of = f"{of_step.NAME} of step {self._source.step} ({self._source.where})"
            self._metadata = of_step.read(content, f"rank {self._checkpointer.me.rank}: {of}")
        return self._metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        if len(plans) != self._checkpointer.me.world_size:
            raise ValueError(f"all {self._checkpointer.me.world_size} ranks of the job take part in a load")
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        source, metadata = self._source, self._metadata
        assert source and metadata
        wanted = {item.storage_index: _extent(metadata, item) for item in plan.items}
        found = source.fetch(list(dict.fromkeys(wanted.values())), of_step.files_of(metadata))
        for item in plan.items:
            extent = wanted[item.storage_index]
            try:
                put(item, found[extent], planner)
            except Exception as error:
                raise CheckpointError(
                    f"rank {self._checkpointer.me.rank}: '{item.storage_index.fqn}' of step {source.step}, in {extent.file} "
                    f"({source.where}): {error}"
                ) from error
        return _done()

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        return self._path or self._checkpointer.place

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return "://" not in os.fspath(checkpoint_id)

    def close(self) -> None:
        """By the next save: memory that nothing uses may be saved over. A load after that reads the newest step."""
        if self._source:
            self._source.close()
        self._source = self._metadata = self._path = None


@contextlib.contextmanager
def read_by_pytorch(
    directory: str, source_of: Callable[[str], StepSource], names: Sequence[str] = ()
) -> Iterator[None]:
    """Meanwhile PyTorch's FileSystemReader reads what its plan asks for from a source, where it reads in `directory` or below it.
    `source_of`: of the directory that it reads in. `names`: of all files of the source, below `directory`."""
    theirs, inside = FileSystemReader.read_data, os.path.abspath(directory)

    def read_data(reader: Any, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        path = os.path.abspath(reader.path)
        if path != inside and not path.startswith(inside + os.sep):
            return theirs(reader, plan, planner)
        source, below = source_of(path), os.path.relpath(path, inside) if names else "."
        wanted = {}
        for item in plan.items:
            info = reader.storage_data[item.storage_index]
            name = os.path.normpath(os.path.join(below, info.relative_path))
            wanted[item.storage_index] = Extent(name, info.offset, info.offset + info.length)
        found = source.fetch(list(dict.fromkeys(wanted.values())), names)
        for item in plan.items:
            put(item, found[wanted[item.storage_index]], planner)
        return _done()

    with changed(FileSystemReader, read_data=read_data):
        yield


def _done() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done


def _extent(metadata: Metadata, item: ReadItem) -> Extent:
    info = metadata.storage_data[item.storage_index]
    if getattr(info, "transform_descriptors", None):
        raise CheckpointError(
            f"{info.relative_path}: '{item.storage_index.fqn}' went through an extension of PyTorch's FileSystemWriter; read it "
            "by PyTorch's FileSystemReader"
        )
    return Extent(info.relative_path, info.offset, info.offset + info.length)


def put(item: ReadItem, content: memoryview, planner: LoadPlanner) -> None:
    if item.type is LoadItemType.BYTE_IO:
        planner.load_bytes(item, io.BytesIO(content))
        return
    saved = torch.load(Window(content), map_location="cpu", weights_only=True)
    part = narrow_tensor_by_index(saved, item.storage_offsets, item.lengths)
    into = planner.resolve_tensor(item).detach()
    if into.size() != part.size():
        raise ValueError(f"it is of {tuple(part.size())}, and its place of {tuple(into.size())}")
    into.copy_(part)
    planner.commit_tensor(item, into)
