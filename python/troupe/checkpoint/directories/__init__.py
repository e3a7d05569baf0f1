"""Checkpoints that a framework writes into a directory by its own code, kept in memory: what Transformers' Trainer and Accelerate share."""

from .capture import Capture
from .checkpointer import DirectoryCheckpointer

__all__ = ["Capture", "DirectoryCheckpointer"]
