"""The loader of elastic training."""

from troupe.elastic import ElasticDataLoader
from troupe_dlrover_names.missing import names_of

__all__ = ["ElasticDataLoader"]

__getattr__ = names_of(__name__)
