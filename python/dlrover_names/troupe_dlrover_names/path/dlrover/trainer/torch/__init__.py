"""What PyTorch's scripts import."""

from troupe_dlrover_names.missing import names_of

__getattr__ = names_of(__name__)
