"""`python -m troupe.run` is actor-launcher for workers that run this interpreter.

It takes torchrun's arguments: `python -m torch.distributed.run …` becomes `python -m troupe.run …`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import debugging
from .config import LaunchConfig
from .programs import ProgramNotFound, program


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Becomes the launcher, or waits for it under a debugger: does not return. Exits with 1 when there is none."""
    try:
        launcher = program()
    except ProgramNotFound as e:
        sys.exit(f"python -m troupe.run: {e}")
    given = sys.argv[1:] if arguments is None else list(arguments)
    if debugging.follows_processes():
        sys.exit(debugged([launcher, "run", *given]))
    environment = {"PYTHON_EXEC": sys.executable, **os.environ}
    os.execve(launcher, ["actor-launcher", *given], environment)


def debugged(command: list[str]) -> int:
    """Runs the launcher and stays, for a debugger shows workers only as long as the process that they belong to."""
    from .api import run

    with debugging.interpreter() as python:
        environment = {**os.environ, "PYTHON_EXEC": python}
        code, _ = run(command, environment, LaunchConfig.signals_to_handle)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
