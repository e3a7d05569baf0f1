"""`dlrover-run`, and `python -m dlrover.trainer.torch.main`: actor-launcher, for workers that run this interpreter."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from troupe.run import main as become_launcher

from . import FOLDER, objection, version_of_real


def main() -> NoReturn:
    """Becomes actor-launcher, which knows dlrover-run's options. Exits with 2 where it is not clear whose command this is."""
    if reason := objection():
        print(f"dlrover-run: {reason}", file=sys.stderr)
        sys.exit(2)
    if version_of_real() is not None:
        # It was said whose names are meant: the workers' Python has to find them first.
        others = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{FOLDER}{os.pathsep}{others}" if others else str(FOLDER)
    become_launcher()
