"""What trainers of other frameworks look at to learn whether a save may return early."""

from troupe.checkpoint.transformers.peer import SaveEngine as CheckpointEngine
from troupe_dlrover_names.missing import names_of

__all__ = ["CheckpointEngine"]

__getattr__ = names_of(__name__)
