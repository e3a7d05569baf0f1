"""torch.distributed.checkpoint with the snapshot as its storage: docs/fsdp.md."""

from .checkpointer import DcpCheckpointer
from .reader import SnapshotReader
from .writer import SnapshotWriter

__all__ = ["DcpCheckpointer", "SnapshotReader", "SnapshotWriter"]
