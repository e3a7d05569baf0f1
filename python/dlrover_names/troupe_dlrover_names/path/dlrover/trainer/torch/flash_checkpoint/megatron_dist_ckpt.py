"""Checkpoints of Megatron-LM with its distributed optimizer."""

from troupe.checkpoint import KeepLatestStep as KeepLatestStepStrategy
from troupe.checkpoint import KeepStepInterval as KeepStepIntervalStrategy
from troupe.checkpoint import StorageType
from troupe.checkpoint.megatron_dist_ckpt import load_checkpoint, save_checkpoint
from troupe_dlrover_names.missing import names_of

__all__ = ["KeepLatestStepStrategy", "KeepStepIntervalStrategy", "StorageType", "load_checkpoint", "save_checkpoint"]

__getattr__ = names_of(__name__)
