"""What Troupe does in a training process without a change in its script; imported by ../sitecustomize.py.

Nothing is done before the script imports torch. Then PyTorch's own places for hooks are used where there are some, and a
few functions are wrapped: each wrapper says in one call of the native library what begins or ends. What cannot be hooked
in this version of PyTorch is left as it is.
"""

import os
import sys

from . import imports

DEBUG = os.environ.get("TROUPE_HOOKS") == "debug"


def begin(site: str) -> None:
    """`site`: the folder that the launcher has put on PYTHONPATH."""
    if os.environ.get("TROUPE_HOOKS", "0") in ("", "0"):
        return
    imports.when_imported("torch", lambda torch: after_torch(torch, site))


def after_torch(torch: object, site: str) -> None:
    from . import native

    # Processes that this one starts are no training processes, and pay nothing.
    leave_environment(site)
    if not native.begin():
        return
    from . import stacks, torch_groups, torch_phases

    for each in (torch_phases.hook, torch_groups.hook, stacks.prepare):
        attempt(each, torch)
    attempt(lambda _: native.begin_channel(torch), torch)


def attempt(what: object, *arguments: object) -> None:
    """A script is never worse off for a hook that does not fit its PyTorch."""
    try:
        what(*arguments)  # type: ignore[operator]
    except Exception as e:
        debug(f"{getattr(what, '__qualname__', what)}: {type(e).__name__}: {e}")


def debug(line: str) -> None:
    if DEBUG:
        sys.stderr.write(f"troupe: hooks: {line}\n")


def leave_environment(site: str) -> None:
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    left = [each for each in entries if not each or os.path.abspath(each) != site]
    if any(left):
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)
