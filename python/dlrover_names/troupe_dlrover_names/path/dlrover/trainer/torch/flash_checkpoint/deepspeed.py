"""Checkpoints of DeepSpeed."""

from troupe.checkpoint import StorageType
from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer
from troupe_dlrover_names.missing import names_of

__all__ = ["DeepSpeedCheckpointer", "StorageType"]

__getattr__ = names_of(__name__)
