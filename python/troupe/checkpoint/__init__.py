"""Checkpoints in the time of one memory copy. Importing this package imports torch.

`DdpCheckpointer` is for training loops, `Arena` below it a process's own images in memory. Both log to "troupe.checkpoint".
"""

from .arena import Arena, View, complete_steps
from .checkpointer import Checkpointer
from .contents import File, Files, HeldFiles, Part
from .ddp import DdpCheckpointer
from .image import Destination, Image
from .library import CheckpointError
from .loads import FoundFiles
from .retention import KeepLatestStep, KeepStepInterval, StorageType
from .skeleton import Skeleton, pickled

__all__ = [
    "Arena",
    "CheckpointError",
    "Checkpointer",
    "DdpCheckpointer",
    "Destination",
    "File",
    "Files",
    "FoundFiles",
    "HeldFiles",
    "Image",
    "KeepLatestStep",
    "KeepStepInterval",
    "Part",
    "Skeleton",
    "StorageType",
    "View",
    "complete_steps",
    "pickled",
]
