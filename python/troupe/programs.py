"""Where the native program and the native library are."""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path

from . import owner

owner.check()

CHECKOUT = Path(__file__).resolve().parents[2]
LIBRARY = "libtroupe_worker.so"
# One of its names; the shorter one, `troupe`, is also a command of another project.
PROGRAM = "actor-troupe"
HOW_TO_GET_IT = (
    "install a wheel that brings it (./x wheel builds one), build it (./x build), or set "
    "TROUPE_BIN_DIR to the folder it is in"
)


class ProgramNotFound(RuntimeError):
    """A native program is nowhere; the text says where it was looked for and what to do."""


def program() -> str:
    """The path of the program that is all of Troupe's programs.

    In this order: TROUPE_BIN_DIR alone if it is set; where this interpreter's scripts are installed, also by `pip install
    --user` and `--target`; the checkout's release build; PATH.

    Raises ProgramNotFound.
    """
    if chosen := os.environ.get("TROUPE_BIN_DIR"):
        if found := shutil.which(PROGRAM, path=chosen):
            return os.path.abspath(found)
        raise ProgramNotFound(f"there is no actor-troupe in TROUPE_BIN_DIR ({chosen})")
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        str(Path(__file__).resolve().parents[1] / "bin"),
        str(CHECKOUT / "build/release/bin"),
    ]
    for folder in folders:
        if found := shutil.which(PROGRAM, path=folder):
            return os.path.abspath(found)
    if found := shutil.which(PROGRAM):
        return os.path.abspath(found)
    raise ProgramNotFound(
        f"the program actor-troupe is not in {', '.join(folders)} and not on PATH; {HOW_TO_GET_IT}"
    )


def library() -> Path:
    """The path of the library of `troupe.checkpoint`: in TROUPE_LIB_DIR alone if that is set, else in `../libexec/troupe` as
    seen from the program.

    Raises ProgramNotFound.
    """
    chosen = os.environ.get("TROUPE_LIB_DIR")
    folder = Path(chosen) if chosen else Path(program()).resolve().parents[1] / "libexec/troupe"
    if (folder / LIBRARY).is_file():
        return folder / LIBRARY
    raise ProgramNotFound(
        f"{LIBRARY} is not in {folder}; build it (./x build) or set TROUPE_LIB_DIR to the folder it is in"
    )


def version() -> str:
    """The version of this package: of the checkout that it is imported from, else of what is installed."""
    from_checkout = CHECKOUT / "VERSION"
    if from_checkout.is_file() and (CHECKOUT / "python/troupe").is_dir():
        return from_checkout.read_text().strip()
    return metadata.version(owner.DISTRIBUTION)
