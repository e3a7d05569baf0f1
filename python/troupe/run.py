"""`python -m troupe.run` is actor-launcher for workers that run this interpreter.

It takes torchrun's arguments: `python -m torch.distributed.run …` becomes `python -m troupe.run …`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .programs import ProgramNotFound, program


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Becomes the launcher: does not return. Exits with 1 when there is none."""
    try:
        launcher = program()
    except ProgramNotFound as e:
        sys.exit(f"python -m troupe.run: {e}")
    environment = {"PYTHON_EXEC": sys.executable, **os.environ}
    given = sys.argv[1:] if arguments is None else list(arguments)
    os.execve(launcher, ["actor-launcher", *given], environment)


if __name__ == "__main__":
    main()
