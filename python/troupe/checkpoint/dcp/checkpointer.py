"""A job whose states torch.distributed.checkpoint saves and loads: FSDP, tensor parallelism, and whatever has DTensors."""

from __future__ import annotations

import logging
import os
import re
import threading
import uuid
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import CheckpointException, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.stateful import Stateful

from ..arena import View
from ..checkpointer import Checkpointer
from ..contents import File, Files, FilesAgain, list_name
from ..copies import Redundancy
from ..files import NAME_BYTES
from ..image import FSDP
from ..library import CheckpointError
from ..outline import Outlined, Selection
from ..ranks import Rank, summary, tell_backend
from ..retention import DeletionStrategy, StorageType
from ..saves import require_valid
from . import metadata as of_step
from .archives import Archives
from .reader import SnapshotReader
from .places import Places, places_of
from .repeated import Repeated, same_structure
from .source import DirectorySource, MemorySource, StepSource
from .unchanged import TensorsAsBefore, Unchanged, seen_in
from .writer import FailedFiles, SnapshotWriter, file_of, in_order

log = logging.getLogger("troupe.checkpoint")


class DcpCheckpointer(Checkpointer):
    """Storage for dcp.save, dcp.async_save and dcp.load, in which each rank of the job has a part of each step.

    Files of a step are in `<checkpoint_dir>/<step>`, as PyTorch's own FileSystemWriter writes them, whose reader reads them.
    Arguments as for DdpCheckpointer. Constructor, saves and loads are collective.
    """

    framework = FSDP

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike,
        comm_backend: str = "",
        deletion_strategy: DeletionStrategy | None = None,
        save_timeout: float = 600,
        replica_count: int = 0,
        *,
        images: int = 2,
        copy_on_write: bool = False,
        parity: int = 0,
        parity_group: int = 8,
        optimizers: Sequence[torch.optim.Optimizer] = (),
    ):
        tell_backend(comm_backend)
        world_size = Rank.of_this_process().world_size
        self.archives = Archives()
        self.name = str(uuid.uuid4())  # in the metadata of its steps
        self._repeated: Repeated | None = None  # what is known of the last `save`
        self._unchanged: Unchanged | None = None  # and of its tensors, if they are plain
        self._as_before: TensorsAsBefore | None = None  # or of what this rank has of them
        self._selections: list[Selection] = []
        self._metadata: tuple[Metadata, dict[MetadataIndex, Any], bytes] | None = None  # that was written last
        self.readers: weakref.WeakSet[SnapshotReader] = weakref.WeakSet()
        self.async_thread: threading.Thread | None = None
        self._directory: tuple[int, str] | None = None  # of the last step, if it is not the default
        super().__init__(
            checkpoint_dir,
            local_shard_num=world_size,
            global_shard_num=world_size,
            deletion_strategy=deletion_strategy,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
            redundancy=Redundancy.chosen(replica_count, parity, parity_group),
            optimizers=optimizers,
        )

    def default_file(self, step: int) -> tuple[str, str]:
        named = self._directory and self._directory[0] == step
        return self._directory[1] if named and self._directory else str(step), list_name(self.shard or 0)

    # ---- Saving ----

    def get_storage_writer(
        self, step: int | None = None, storage_type: StorageType = StorageType.DISK, path: str = ""
    ) -> SnapshotWriter:
        """For dcp.save and dcp.async_save. `path`: `<checkpoint_dir>/<directory>` instead of `<checkpoint_dir>/<step>`.

        Without a step one writer serves many saves, and each is told by its `checkpoint_id`, whose name ends with the step.
        """
        directory = self.step_at(path, False)[1] if path else ""
        return SnapshotWriter(self, step, storage_type, directory)

    def save(
        self, step: int, state: Any, path: str = "", storage_type: StorageType = StorageType.DISK
    ) -> bool:
        """As `dcp.save` with a storage writer, but that nothing is planned for a state of the same structure as in the last call.

        `state`: as dcp.save takes it. Returns False at all ranks, and logs why, if it could not be kept at any; see
        `save_checkpoint`. Raises what dcp.save raises for a state that cannot be planned.
        """
        self.wait_for_async_save()
        require_valid(step, storage_type)
        directory = self.step_at(path, False)[1] if path else ""
        state = {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state.items()}
        seen = None if self._as_before else seen_in(state, self._selections)  # which of DTensors there is none
        unchanged = self._unchanged is not None and self._unchanged.fits(seen)
        values, shape, same = ([], [], True) if unchanged else same_structure(state, self._repeated)
        all_same = all(row[0] for row in self._ranks.gather([same]))
        if self._repeated and all_same:
            kept = self._save_again(self._repeated, step, (state, seen, values), storage_type, directory)
        else:
            if unchanged:
                values, shape, _ = same_structure(state, None)
            kept = self._save_first(step, state, (len(values), shape), storage_type, directory)
        self.agree()
        return kept

    def _save_first(
        self, step: int, state: Any, walked: tuple[int, list[Any]], storage_type: StorageType, directory: str
    ) -> bool:
        self._unchanged = self._as_before = None
        planner, writer = DefaultSavePlanner(), SnapshotWriter(self, step, storage_type, directory)
        group = self._ranks.group
        try:
            with warnings.catch_warnings():  # of one rank: that it is alone
                warnings.filterwarnings("ignore", message="torch.distributed is disabled")
                dcp.save(
                    state,
                    storage_writer=writer,
                    planner=planner,
                    process_group=group,
                    no_dist=group is None,
                )
        except CheckpointException as error:
            if writer.kept is False:
                return False
            raise
        of_ranks = [
            [(file_of(rank), item.index) for item in in_order(plan.items)]
            for rank, plan in enumerate(getattr(planner, "global_plan", None) or ())
        ]
        self._repeated = Repeated.of(
            *(planner, state, *walked, file_of(self.me.rank), in_order(planner.plan.items)),
            *(of_ranks, writer.parts, writer.content),
        )
        return True

    def _save_again(
        self,
        known: Repeated,
        step: int,
        looked_at: tuple[Any, Outlined | None, Sequence[Any]],
        storage_type: StorageType,
        directory: str,
    ) -> bool:
        """`looked_at`: the state, its outline, and its values, of which there are none if it is unchanged."""
        state, seen, values = looked_at
        try:
            if self._unchanged and seen and not values:
                files: Files = self._unchanged.files(state, seen)
            elif again := self._as_before and self._as_before.files(values):
                files = again
            else:
                files = Files([File(known.file, known.parts(values, self.archives))])
            files.last_file_room = known.places.last_file_room
        except Exception as error:
            files = FailedFiles(error)
        if not self.keep_step(step, files, storage_type, directory):
            return False
        moved = not isinstance(files, FilesAgain) or files.moved
        if not self.described(step, known.places, places_of(files.parts) if moved else known.places.mine):
            return False
        if values and not isinstance(files, FilesAgain):
            kept = files, known.items, values, known.at
            self._unchanged = seen and Unchanged.of(state, seen, *kept)
            self._as_before = None if self._unchanged else TensorsAsBefore.of(*kept)
        return True

    def described(self, step: int, known: Places, mine: list[int]) -> bool:
        """Writes the metadata of a save that has the structure of the one before, of which this rank's items lie there. Collective."""
        content, reason = known.describe(self._ranks, mine, self.written), ""
        try:
            if content:
                self.last_file(of_step.NAME, content)
        except CheckpointError as error:
            reason = str(error)
        if reasons := self._ranks.objections(reason):
            log.error("rank %d: step %d is not saved: %s", self.me.rank, step, summary(reasons))
        return not reasons

    def written(self, metadata: Metadata, where: dict[MetadataIndex, Any]) -> bytes:
        """The content of `.metadata`, which is pickled when it has changed."""
        last = self._metadata
        if not last or last[0] is not metadata or last[1] != where:
            content = of_step.written(metadata, where, self.place, self.name)
            last = self._metadata = (metadata, where, content)
        return last[2]

    def step_at(self, path: str | os.PathLike, numbered: bool) -> tuple[int | None, str]:
        """The step and the directory that a path names: `numbered`: its name ends with the step.

        Raises ValueError if it is not `<checkpoint_dir>/<directory>`, or has no number at its end though it should.
        """
        above, directory = os.path.split(os.path.abspath(path))
        if above != self.place:
            raise ValueError(f"path: '{os.fspath(path)}' is not {self.place}/<directory>")
        if directory.startswith(".") or len(os.fsencode(directory)) > NAME_BYTES:
            raise ValueError(
                f"path: '{os.fspath(path)}': '{directory}' begins with a dot or has more than {NAME_BYTES} bytes"
            )
        number = re.search(r"[0-9]+$", directory)
        if numbered and not number:
            raise ValueError(f"checkpoint_id: '{os.fspath(path)}' does not end with the number of the step")
        return int(number[0]) if number else None, directory

    def keep_step(self, step: int, files: Files, storage_type: StorageType, directory: str) -> bool:
        """For the writer; as `save_files`."""
        for reader in list(self.readers):
            reader.close()
        self._directory = (step, directory) if directory else None
        return self.save_files(step, files, storage_type)

    def agree(self) -> None:
        """Of a save whose metadata came behind the call: if all ranks have all of it by now, that is what they go on from after a
        failure. Else, with copy-on-write or devices, they find that out at the next save. Collective."""
        if not self._behind or not self._saves or not self._arena:
            return
        image = self._arena.newest()
        made = [image.generation, image.save, image.step] if image else [0, 0, -1]
        rows = self._ranks.gather([*made, self._last_save])
        if image and all(row == [*made, image.save] for row in rows):
            self._saves.agree(image)
            self._behind = False

    def wait_for_async_save(self) -> None:
        """Until nothing is left to do of the last dcp.async_save, if it was one."""
        thread, self.async_thread = self.async_thread, None
        if thread and thread is not threading.current_thread():
            thread.join()

    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        self.wait_for_async_save()
        return super().wait_latest_checkpoint(timeout)

    def close(self) -> None:
        self.wait_for_async_save()
        super().close()

    # ---- Loading ----

    def get_storage_reader(self, resume_path: str | os.PathLike = "") -> SnapshotReader | None:
        """For dcp.load, of the newest step, wherever it is; None if there is none. `resume_path`: a directory that the job begins
        with instead of the disk's newest step, this job's or one of PyTorch's FileSystemWriter; what is in memory is newer."""
        reader = SnapshotReader(self, resume_path)
        return reader if reader.found() else None

    def newest_source(self, resume_path: str | os.PathLike = "") -> StepSource | None:
        """The newest step that can be had, of any world. Collective. Raises CheckpointError as `load_checkpoint` does."""
        self.wait_for_async_save()
        if resume_path:
            if in_memory := self._in_memory():
                return in_memory
            self.begins_with(os.path.abspath(resume_path))
            return self.source_at(resume_path)
        found = self.load_files()
        if found and found.directory:
            return DirectorySource(found.directory, found.step, self.me)
        return MemorySource(self._ranks, found.step, found.files) if found else None

    def source_at(self, path: str | os.PathLike) -> StepSource:
        """A step by its directory. Collective: from memory, if that is where it is."""
        self.wait_for_async_save()
        directory = os.path.abspath(path)
        step = None
        if os.path.dirname(directory) == self.place:
            step = self.step_at(path, False)[0]
            found = self._in_memory() if step is not None else None
            if found and found.step == step:
                return found
        return DirectorySource(directory, step, self.me)

    def _in_memory(self) -> MemorySource | None:
        self._fresh = False
        found = self._loads().newest(False, View.files)
        if not found:
            return None
        self._has(found[0])
        return MemorySource(self._ranks, found[0].step, found[1])
