"""A fixed global batch in elastic training."""

from troupe.elastic import ElasticDataLoader, ElasticTrainer, GradientState
from troupe_dlrover_names.missing import names_of

__all__ = ["ElasticDataLoader", "ElasticTrainer", "GradientState"]

__getattr__ = names_of(__name__)
