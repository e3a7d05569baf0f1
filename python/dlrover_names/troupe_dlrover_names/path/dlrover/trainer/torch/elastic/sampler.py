"""The sampler of elastic training."""

from troupe.elastic import ElasticDistributedSampler
from troupe_dlrover_names.missing import names_of

__all__ = ["ElasticDistributedSampler"]

__getattr__ = names_of(__name__)
