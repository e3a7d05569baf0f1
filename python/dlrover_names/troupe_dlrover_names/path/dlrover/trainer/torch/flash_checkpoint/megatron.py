"""Checkpoints of Megatron-LM."""

from troupe.checkpoint import StorageType
from troupe.checkpoint.megatron import load_checkpoint, save_checkpoint
from troupe_dlrover_names.missing import names_of

__all__ = ["StorageType", "load_checkpoint", "save_checkpoint"]

__getattr__ = names_of(__name__)
