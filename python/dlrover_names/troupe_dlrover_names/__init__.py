"""The names of DLRover's Python package that Troupe has, for scripts that import them.

The modules are in `path/dlrover`. `python -m troupe_dlrover_names` says which package `import dlrover` takes here, and why.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "path"
TOLD = "TROUPE_DLROVER_NAMES"
REAL = "dlrover"  # the distribution


def version_of_real() -> str | None:
    """Of DLRover itself, where it is installed as well."""
    try:
        return metadata.version(REAL)
    except metadata.PackageNotFoundError:
        return None


def objection() -> str:
    """Why these names are not given here; empty if there is no reason. Two packages of one name cannot be mixed."""
    real = version_of_real()
    if real is None or os.environ.get(TOLD) == "1":
        return ""
    return (
        f"DLRover {real} is installed as well as actor-launcher-dlrover-names, and only one of them can be `dlrover`: "
        "pip uninstall one of the two. Until then `import dlrover` is DLRover's, and "
        "`python -m dlrover.trainer.torch.main` is its dlrover-run; "
        f"{TOLD}=1 dlrover-run … starts actor-launcher, with workers that import Troupe's names"
    )
