"""Where the native programs are."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


class ProgramNotFound(RuntimeError):
    """A native program is nowhere; the text says where it was looked for and what to do."""


def find(name: str) -> str:
    """The path of a native program.

    In this order: TROUPE_BIN_DIR alone if it is set; where this interpreter's scripts are installed (the
    wheel's place); the checkout's release build; PATH.

    Raises ProgramNotFound.
    """
    if chosen := os.environ.get("TROUPE_BIN_DIR"):
        folders = [chosen]
    else:
        folders = [sysconfig.get_path("scripts"), str(CHECKOUT / "build/release/bin")]
    for folder in folders:
        if found := shutil.which(name, path=folder):
            return os.path.abspath(found)
    if chosen:
        raise ProgramNotFound(f"there is no {name} in TROUPE_BIN_DIR ({chosen})")
    if found := shutil.which(name):
        return os.path.abspath(found)
    raise ProgramNotFound(
        f"{name} is not in {', '.join(folders)} and not on PATH; "
        "build it (./x build) or set TROUPE_BIN_DIR to the folder it is in"
    )
