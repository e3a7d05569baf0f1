"""For scripts of these tests."""

import os
import sys
from typing import NoReturn


def show(what: str = "here") -> None:
    """Stops until the test has looked."""
    print(what, flush=True)
    input()


def leave() -> NoReturn:
    """The interpreter's own end would abort a process of which a thread of a gloo group is about to let go of a tensor."""
    sys.stdout.flush()
    os._exit(0)
