"""Checkpoints of DistributedDataParallel."""

from troupe.checkpoint import Checkpointer, DdpCheckpointer, StorageType
from troupe_dlrover_names.missing import names_of

__all__ = ["Checkpointer", "DdpCheckpointer", "StorageType"]

__getattr__ = names_of(__name__)
