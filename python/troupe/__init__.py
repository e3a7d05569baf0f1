"""Troupe from Python: torchrun's command line and torch's launch API, on the actor-launcher.

`python -m troupe.run …` takes torchrun's arguments. `troupe.launch(config, function)(*arguments)` runs
a function in every worker and returns what it returned. In a worker, `troupe.step()` and
`with troupe.phase("name")` say how far it is. Importing this package does not import torch.
"""

from typing import TYPE_CHECKING, Any

__distribution__ = "actor-launcher"  # what owner.py looks at, so it stands before the first import of ours

from .api import launch
from .config import LaunchConfig, LogsSpecs
from .errors import ChildFailedError, LauncherError, ProcessFailure, SignalException
from .programs import ProgramNotFound, version

if TYPE_CHECKING:
    from .progress import phase, step, touch

__all__ = [
    "ChildFailedError",
    "LaunchConfig",
    "LauncherError",
    "LogsSpecs",
    "ProcessFailure",
    "ProgramNotFound",
    "SignalException",
    "launch",
    "phase",
    "step",
    "touch",
]


def __getattr__(name: str) -> Any:
    """What an import costs nothing for: it is read when it is asked for."""
    if name == "__version__":
        return version()
    if name in ("phase", "step", "touch"):
        from . import progress

        return getattr(progress, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
