"""What all checkpointers have in common."""

from troupe.checkpoint import Checkpointer, StorageType
from troupe_dlrover_names.missing import names_of

__all__ = ["Checkpointer", "StorageType"]

__getattr__ = names_of(__name__)
