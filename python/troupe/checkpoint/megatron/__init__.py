"""Megatron-LM's checkpoints in the time of one memory copy: docs/megatron.md. Importing this imports no Megatron."""

from ..retention import KeepLatestStep, KeepStepInterval, StorageType
from .checkpointer import close, wait_latest_checkpoint, wait_latest_copies
from .saving import load_checkpoint, save_checkpoint

__all__ = [
    "KeepLatestStep",
    "KeepStepInterval",
    "StorageType",
    "close",
    "load_checkpoint",
    "save_checkpoint",
    "wait_latest_checkpoint",
    "wait_latest_copies",
]
