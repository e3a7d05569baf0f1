"""xpu_timer's commands `xpu_timer_launch` and `xpu_timer_stacktrace_viewer`: Troupe's program, which takes their arguments."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import NoReturn

from troupe.programs import ProgramNotFound, program

REAL = "py_xpu_timer"  # the distribution


def become(command: str) -> NoReturn:
    """Exits with 2 where xpu_timer itself is installed, whose command this may then be, and with 1 without the program."""
    try:
        real = metadata.version(REAL)
    except metadata.PackageNotFoundError:
        pass
    else:
        print(
            f"{command}: xpu_timer {real} is installed as well as actor-launcher-dlrover-names, and both have this command: "
            "pip uninstall one of the two",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        file = program()
    except ProgramNotFound as e:
        sys.exit(f"{command}: {e}")
    os.execv(file, [command, *sys.argv[1:]])


def launch() -> NoReturn:
    become("xpu_timer_launch")


def stacktrace_viewer() -> NoReturn:
    become("xpu_timer_stacktrace_viewer")
