"""Troupe from Python: torchrun's command line and torch's launch API, on the actor-launcher.

`python -m troupe.run …` takes torchrun's arguments. `troupe.launch(config, function)(*arguments)` runs
a function in every worker and returns what it returned. Importing this package does not import torch.
"""

from .api import launch
from .config import LaunchConfig, LogsSpecs
from .errors import ChildFailedError, LauncherError, ProcessFailure, SignalException
from .programs import ProgramNotFound, version

__all__ = [
    "ChildFailedError",
    "LaunchConfig",
    "LauncherError",
    "LogsSpecs",
    "ProcessFailure",
    "ProgramNotFound",
    "SignalException",
    "launch",
]


def __getattr__(name: str) -> str:
    """`__version__`, read when it is asked for: an import costs nothing for it."""
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
