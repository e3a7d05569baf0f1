"""The names by which DLRover's users know Megatron's distributed optimizer and formats. The functions are the same ones, since it
is Megatron's arguments that say which format there is."""

from .megatron import (
    KeepLatestStep,
    KeepStepInterval,
    StorageType,
    close,
    load_checkpoint,
    save_checkpoint,
    wait_latest_checkpoint,
    wait_latest_copies,
)

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
