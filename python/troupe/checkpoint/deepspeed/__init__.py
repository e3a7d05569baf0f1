"""DeepSpeed's checkpoints in the time of one memory copy: ZeRO 0 to 3. Importing this package imports deepspeed.

DeepSpeed collects a step itself and gives each file to its checkpoint engine; here that engine keeps all files of a rank as one
snapshot, and gives them back. On the disk lies what DeepSpeed writes.
"""

from __future__ import annotations

try:
    import deepspeed as _deepspeed  # noqa: F401 - before all that needs it
except ImportError as error:
    raise ImportError(
        f"troupe.checkpoint.deepspeed needs DeepSpeed, which cannot be imported ({error}): pip install deepspeed"
    ) from error

from .checkpointer import DeepSpeedCheckpointer
from .plugin import install

__all__ = ["DeepSpeedCheckpointer", "install"]
