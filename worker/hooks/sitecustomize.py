"""Begins the hooks of Troupe in a training process, then is as if it had never been there.

The launcher puts this file's folder first on PYTHONPATH. Python imports `sitecustomize` at its start: here it prepares the
hooks, takes its folder off the path, and runs the `sitecustomize` that Python would have found without it. Every Python
process below a worker comes by here, so nothing is imported that is not needed, and nothing that fails is told to a script.
"""

import sys


def begin() -> None:
    folder = __file__.rpartition("/")[0]
    try:
        import _troupe_hooks

        _troupe_hooks.begin(folder)
    except Exception as e:
        import os

        if os.environ.get("TROUPE_HOOKS") == "debug":
            sys.stderr.write(f"troupe: no hooks: {type(e).__name__}: {e}\n")
    sys.path[:] = [each for each in sys.path if each != folder]


begin()
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401 - the next one on the path
except ImportError as e:
    if e.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = own
