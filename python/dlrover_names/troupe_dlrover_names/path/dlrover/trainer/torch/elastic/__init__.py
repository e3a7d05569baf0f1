"""Training in worlds that change their size: names of `troupe.elastic`."""

from troupe_dlrover_names.missing import names_of

__getattr__ = names_of(__name__)
