"""What torch.distributed.checkpoint writes to, with a snapshot as its target.

Without this a sharded state is written item by item, with a copy and a pickle of each, while training waits. With it all
that a rank has to write is laid out as one file of the snapshot, and copied once. From there the disk gets what PyTorch's
own FileSystemWriter writes: `__<rank>_0.distcp`, and `.metadata` of the coordinator, which is the snapshot's last file.
"""

from __future__ import annotations

import dataclasses
import io
import os
import threading
import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint import StorageWriter
from torch.distributed.checkpoint.filesystem import _StoragePrefix
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.staging import AsyncStager
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from ..contents import File, Files, Part
from ..library import CheckpointError
from ..ranks import Rank
from ..retention import StorageType
from ..skeleton import without_collector
from . import metadata as of_step
from .archives import Archives

if TYPE_CHECKING:
    from .checkpointer import DcpCheckpointer

LOOK_EVERY = 0.05  # seconds, whether the thread of an async_save has ended


class FailedFiles(Files):
    """Of a rank that could not lay out what it has: its save raises why, and the other ranks hear of it."""

    def __init__(self, why: Exception):
        super().__init__([])
        self._why = why

    @property
    def storages(self) -> list[torch.UntypedStorage]:
        raise self._why


class RankFileWriter(StorageWriter):
    """All that a rank has to write is one file, `__<rank>_0.distcp`, as with FileSystemWriter; the coordinator writes `.metadata`.
    Every rank of the job takes part in a save."""

    def __init__(self, me: Rank, archives: Archives):
        super().__init__()
        self.me, self.archives = me, archives
        self.parts: list[Part] = []  # of the last save, in the order of its file
        self._coordinator = False
        self._plans: Sequence[SavePlan] = ()  # of all ranks, at the coordinator

    @abstractmethod
    def _placed(self, name: str, items: Sequence[WriteItem], plan: SavePlan, planner: SavePlanner) -> list[Part]:
        """The file's parts, of which it is known where they lie."""

    @abstractmethod
    def _finished(self, metadata: Metadata, where: dict[MetadataIndex, Any]) -> None:
        """At the coordinator, when all ranks have written."""

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        pass

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise ValueError("use_collectives=False: a step has one metadata for all of its ranks")
        if kwargs.get("rank", self.me.rank) != self.me.rank:
            raise ValueError(_NOT_ALL.format(self.me.world_size))
        self._coordinator = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if len(plans) != self.me.world_size:
            raise ValueError(_NOT_ALL.format(self.me.world_size))
        self._plans = plans
        # PyTorch keeps plans for all writers of a process; its own needs this.
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        name, items = file_of(self.me.rank), in_order(plan.items)
        self.parts = self._placed(name, items, plan, planner)
        with without_collector():
            results = [
                WriteResult(item.index, part.size, of_step.StorageInfo(name, part.begin, part.size))
                for item, part in zip(items, self.parts, strict=True)
            ]
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        with without_collector():
            self._finished(metadata, {one.index: one.storage_data for of_rank in results for one in of_rank})

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return "://" not in os.fspath(checkpoint_id)

    def _parts_of(self, items: Sequence[WriteItem], planner: SavePlanner) -> list[Part]:
        parts = []
        # A DTensor's local part is itself then, not a function of it.
        with torch.no_grad(), without_collector():
            for item in items:
                data = planner.resolve_data(item)
                parts.append(Part(data.getvalue()) if isinstance(data, io.BytesIO) else self.archives.part(data))
        return parts


class SnapshotWriter(RankFileWriter, AsyncStager):
    """`DcpCheckpointer.get_storage_writer` makes it. Every rank of the job takes part in the save.

    With dcp.async_save it is its own stager, and no second copy of the state is made: the call returns when the snapshot has
    it, and the rest is done behind it. As any async_save it needs a process group that training does not use meanwhile.
    """

    def __init__(
        self,
        checkpointer: DcpCheckpointer,
        step: int | None = None,
        storage_type: StorageType = StorageType.DISK,
        directory: str = "",
    ):
        """`step`, `directory`: see `DcpCheckpointer.get_storage_writer`; both may be left to the `checkpoint_id` of a save."""
        super().__init__(checkpointer.me, checkpointer.archives)
        self.checkpointer, self.storage_type = checkpointer, storage_type
        self.step, self.directory = step, directory
        self._says_step = step is None
        self._copied: threading.Event | None = None  # of an async_save
        self.kept: bool | None = None  # of the last save: whether it could be
        self.content = b""  # of its metadata's file, at the coordinator

    # ---- As a StorageWriter ----

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self._in_thread()
        if checkpoint_id is not None:
            step, self.directory = self.checkpointer.step_at(checkpoint_id, self._says_step)
            self.step = step if self._says_step else self.step

    def storage_meta(self) -> Any:
        self._in_thread()
        made = getattr(torch.distributed.checkpoint.metadata, "StorageMeta", None)
        return made(checkpoint_id=self.checkpoint_id) if made else None

    def _placed(self, name: str, items: Sequence[WriteItem], plan: SavePlan, planner: SavePlanner) -> list[Part]:
        """Raises CheckpointError at all ranks if the step is not kept at any; the log says why."""
        try:
            files: Files = Files([File(name, self._parts_of(items, planner))])
            if self._coordinator:
                files.last_file_room = self._room(plan, planner)
        except Exception as error:
            files = FailedFiles(error)
        try:
            self._keep(files)
        finally:
            if self._copied:
                self._copied.set()
        return files.parts

    def _finished(self, metadata: Metadata, where: dict[MetadataIndex, Any]) -> None:
        self.content = self.checkpointer.written(metadata, where)
        self.checkpointer.last_file(of_step.NAME, self.content)

    @property
    def checkpoint_id(self) -> str:
        return os.path.join(self.checkpointer.place, self.directory or str(self.step))

    def _room(self, plan: SavePlan, planner: SavePlanner) -> int:
        """For the metadata. A planner that keeps its plans has not given them to `prepare_global_plan` again."""
        plans = getattr(planner, "global_plan", None) or self._plans
        if any(not getattr(one, "usable", True) for one in plans):
            plans = [plan] * len(plans)
        return of_step.room_for(plans)

    def _keep(self, files: Files) -> None:
        if self.step is None:
            raise ValueError(
                "the step is not known: give get_storage_writer a step, or dcp.save a checkpoint_id whose name ends with it, "
                f"as {os.path.join(self.checkpointer.place, '100')}"
            )
        self.kept = self.checkpointer.keep_step(self.step, files, self.storage_type, self.directory)
        if not self.kept:
            raise CheckpointError(f"step {self.step} is not saved; the log of troupe.checkpoint says why")

    # ---- As an AsyncStager ----

    def stage(self, state_dict: Any) -> Any:
        self.checkpointer.wait_for_async_save()
        self._copied = threading.Event()
        return state_dict

    @property
    def should_synchronize_after_execute(self) -> bool:
        return True

    def synchronize_staging(self) -> None:
        """Until the state may be changed. If it was not saved, the future of the save says why."""
        while self._copied and not self._copied.wait(LOOK_EVERY):
            thread = self.checkpointer.async_thread
            if thread and not thread.is_alive():
                break

    def _in_thread(self) -> None:
        if self._copied and not self._copied.is_set():
            self.checkpointer.async_thread = threading.current_thread()

    def close(self) -> None:
        self.checkpointer.wait_for_async_save()

    def __getstate__(self) -> Any:
        raise TypeError("a SnapshotWriter stays in its process: use AsyncCheckpointerType.THREAD")


_NOT_ALL = (
    "all {} ranks of the job take part in a save: a process_group of fewer, or no_dist, cannot be saved. "
    "Copies of a part at several ranks are written once anyway"
)


def file_of(rank: int) -> str:
    return f"__{rank}_0.distcp"


def in_order(items: Sequence[WriteItem]) -> list[WriteItem]:
    """As PyTorch writes them: what is no tensor comes first."""
    first = [item for item in items if item.type is WriteItemType.BYTE_IO]
    return first + [item for item in items if item.type is not WriteItemType.BYTE_IO]


class NotedWriter(RankFileWriter):
    """In the place of FileSystemWriter, in a directory whose files are kept in memory later: the file of this rank is `noted` there, with
    the tensors where they are, and `.metadata` is written."""

    def __init__(self, me: Rank, archives: Archives, directory: str, place: str, noted: Callable[[str, list[Part]], None]):
        """`place`: where the directory will be."""
        super().__init__(me, archives)
        self._directory, self._place, self._noted = directory, place, noted

    def _placed(self, name: str, items: Sequence[WriteItem], plan: SavePlan, planner: SavePlanner) -> list[Part]:
        file = File(name, self._parts_of(items, planner))
        Files([file]).lay_out()
        self._noted(os.path.join(self._directory, name), file.parts)
        return file.parts

    def _finished(self, metadata: Metadata, where: dict[MetadataIndex, Any]) -> None:
        content = of_step.written(metadata, where, self._place, str(uuid.uuid4()))
        with open(os.path.join(self._directory, of_step.NAME), "wb") as file:
            file.write(content)
