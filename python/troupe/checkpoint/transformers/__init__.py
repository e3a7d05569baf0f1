"""Checkpoints of Transformers' Trainer: one line in a script.

    trainer = troupe.checkpoint.transformers.flash(trainer)

Importing this package imports transformers.
"""

try:
    import transformers as _transformers  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "troupe.checkpoint.transformers is for Transformers' Trainer, which is not installed: pip install transformers accelerate"
    ) from _error

from ..directories.checkpointer import DirectoryCheckpointer
from .flash import Flash, Options
from .peer import HfDdpCheckpointer, HfDeepSpeedCheckpointer, HfFlashCheckpointer
from .trainer import FlashCkptTrainer, FlashMixin, flash

__all__ = [
    "DirectoryCheckpointer",
    "Flash",
    "FlashCkptTrainer",
    "FlashMixin",
    "HfDdpCheckpointer",
    "HfDeepSpeedCheckpointer",
    "HfFlashCheckpointer",
    "Options",
    "flash",
]
