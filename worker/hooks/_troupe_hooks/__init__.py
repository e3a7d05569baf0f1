"""What Troupe does in a training process without a change in its script; imported by ../sitecustomize.py after torch.

No function of PyTorch is replaced and no object of Python is another: the native library exchanges the addresses of C functions
that PyTorch calls anyway, and looks on (worker/python). What cannot be hooked in this version of PyTorch is left as it is.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from . import native


def begin(torch: Any, when_imported: Callable[[str, Any], None], folder: str) -> None:
    """`folder`: which the launcher has put on PYTHONPATH."""
    # Processes that this one starts are no training processes, and pay nothing.
    leave_environment(folder)
    if not native.begin():
        return
    from . import deepspeed_checkpoints, stacks, torch_groups, torch_phases

    attempt(torch_phases.hook, torch, when_imported)
    attempt(torch_groups.hook, torch)
    attempt(deepspeed_checkpoints.hook, when_imported)
    attempt(stacks.prepare)
    attempt(native.begin_channel, torch)


def attempt(what: Callable[..., Any], *arguments: Any) -> None:
    """A script is never worse off for a hook that does not fit its PyTorch."""
    try:
        what(*arguments)
    except Exception as e:
        debug(f"{getattr(what, '__qualname__', what)}: {type(e).__name__}: {e}")


def debug(line: str) -> None:
    if os.environ.get("TROUPE_HOOKS") == "debug":
        sys.stderr.write(f"troupe: hooks: {line}\n")


def leave_environment(folder: str) -> None:
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    left = [each for each in entries if not each or os.path.abspath(each) != folder]
    if any(left):
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)
