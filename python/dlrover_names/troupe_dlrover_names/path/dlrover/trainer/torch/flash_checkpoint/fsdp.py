"""Checkpoints of fully sharded training."""

from troupe.checkpoint import StorageType
from troupe.checkpoint.fsdp import FsdpFullCheckpointer, FsdpShardCheckpointer
from troupe_dlrover_names.missing import names_of

__all__ = ["FsdpFullCheckpointer", "FsdpShardCheckpointer", "StorageType"]

__getattr__ = names_of(__name__)
