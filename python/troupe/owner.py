"""Whose package `troupe` this is. Another project has a distribution of that name, with a module and a command of that name."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "actor-launcher"
OTHER = "troupe"


def objection() -> str:
    """Why the package that Python has imported as `troupe` is not ours; empty if it is."""
    if getattr(sys.modules[__package__], "__distribution__", None) == DISTRIBUTION:
        return ""
    file = Path(__file__).with_name("__init__.py")
    again = f"-m pip install --force-reinstall --no-deps the wheel {DISTRIBUTION.replace('-', '_')}-*.whl"
    try:
        version = metadata.version(OTHER)
    except metadata.PackageNotFoundError:
        return (
            f"{file} belongs to actor-launcher, but is missing or another project's, as after pip uninstall {OTHER}, which takes "
            f"files of the same name away: {sys.executable} {again}"
        )
    return (
        f"{file} belongs to actor-launcher, but is that of the distribution {OTHER} {version}, another project, which pip has "
        f"written over it. The two cannot share an environment: {sys.executable} -m pip uninstall {OTHER}, then {again}"
    )


def check() -> None:
    """Raises ImportError, with the remedy, where another project's files are in the place of ours."""
    if text := objection():
        raise ImportError(text)
