"""Says which package `import dlrover` takes. Ends with 0 if it is this one, else with 1."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from . import FOLDER, objection


def main() -> int:
    found = importlib.util.find_spec("dlrover") if not objection() else None
    if found and found.origin and FOLDER in Path(found.origin).resolve().parents:
        print(f"import dlrover: Troupe's names, in {FOLDER}/dlrover")
        return 0
    if reason := objection():
        print(reason)
    elif found:
        where = found.origin or "a folder without __init__.py"
        print(f"import dlrover: another package, {where}, which Python finds first")
    else:
        print(
            f"import dlrover: nothing, since Python does not look in {FOLDER}: it reads .pth files only where packages are "
            f"installed. With pip install --target, put that folder into PYTHONPATH as well"
        )
    return 1


if __name__ == "__main__":
    sys.exit(main())
