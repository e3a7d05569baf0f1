"""Checkpoints in the time of one memory copy. Importing this package imports torch.

What is there so far: `Arena`, a process's own images in memory, which under `actor-launcher` outlive it, and the file format.
They are what `DdpCheckpointer` will stand on; it is not there yet, nor does anything write images out.
"""

from .arena import Arena, Image
from .library import CheckpointError
from .skeleton import Skeleton, pickled

__all__ = ["Arena", "CheckpointError", "Image", "Skeleton", "pickled"]
