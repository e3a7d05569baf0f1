"""Directories of Transformers' Trainer and of Accelerate with FSDP.

    checkpoint-<step>/pytorch_model_fsdp_0/.metadata, __<rank>_0.distcp     SHARDED_STATE_DICT: of each rank, its part
    checkpoint-<step>/optimizer_0/…
    checkpoint-<step>/pytorch_model_fsdp.bin, optimizer.bin                 FULL_STATE_DICT: of rank 0, all

Both call torch.distributed.checkpoint with PyTorch's FileSystemWriter and FileSystemReader, which copy a state item by item. Here the
writer notes where the tensors are, and the reader's items come from the memory of the ranks that have them: another number of
ranks can go on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import _storage_utils

from ..changes import changed
from ..dcp.archives import Archives
from ..dcp.reader import read_by_pytorch
from ..dcp.source import DirectorySource, MemorySource, StepSource
from ..dcp.writer import NotedWriter
from .capture import Capture
from .sharded import ShardedDirectoryCheckpointer

SUFFIX = ".distcp"


class FsdpDirectoryCheckpointer(ShardedDirectoryCheckpointer):
    """A step goes on in a world of any size."""

    def __init__(self, checkpoint_dir: str | os.PathLike, **options: Any):
        self._archives = Archives()
        super().__init__(checkpoint_dir, **options)

    @contextlib.contextmanager
    def noting(self, capture: Capture) -> Iterator[None]:
        theirs = dcp.FileSystemWriter

        def writer(path: Any, *more: Any, **named: Any) -> Any:
            if not capture.is_ours(path):
                return theirs(path, *more, **named)
            place = os.path.join(self.place, os.path.relpath(os.path.realpath(path), capture.root))
            return NotedWriter(self.me, self._archives, os.fspath(path), place, capture.note)

        writer.validate_checkpoint_id = theirs.validate_checkpoint_id  # type: ignore[attr-defined]
        # dcp.save(state, checkpoint_id=…) finds it there.
        with super().noting(capture), changed(dcp, FileSystemWriter=writer), changed(_storage_utils, FileSystemWriter=writer):
            yield

    def lies_in_directory(self, name: str, of_node: bool) -> bool:
        return not name.endswith(SUFFIX)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        if not self._read:
            yield
            return
        found, directory, names = self._read
        in_memory = MemorySource(self._ranks, found.step, found.files)

        def source_of(path: str) -> StepSource:
            return in_memory if names else DirectorySource(path, found.step, self.me)

        with read_by_pytorch(directory, source_of, names):
            yield
