"""Checkpoints of Transformers' Trainer."""

from typing import Any

from troupe.checkpoint import StorageType
from troupe.checkpoint.transformers import FlashCkptTrainer, HfDdpCheckpointer, HfDeepSpeedCheckpointer, peer
from troupe.checkpoint.transformers.ms_swift import install
from troupe_dlrover_names.missing import names_of

__all__ = [
    "FlashCkptTrainer",
    "HfDdpCheckpointer",
    "HfDeepSpeedCheckpointer",
    "HfFlashCheckpointer",
    "StorageType",
]

_missing = names_of(__name__)


def __getattr__(name: str) -> Any:
    """ms-swift asks for HfFlashCheckpointer when its pipeline begins, whatever has imported this module before."""
    if name != "HfFlashCheckpointer":
        return _missing(name)
    install()
    return peer.HfFlashCheckpointer
