"""Which steps of checkpoints are kept."""

from troupe.checkpoint import KeepLatestStep as KeepLatestStepStrategy
from troupe.checkpoint import KeepStepInterval as KeepStepIntervalStrategy
from troupe_dlrover_names.missing import names_of

__all__ = ["KeepLatestStepStrategy", "KeepStepIntervalStrategy"]

__getattr__ = names_of(__name__)
