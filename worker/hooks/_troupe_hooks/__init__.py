"""What Troupe does in a training process without a change in its script; imported by ../sitecustomize.py after torch.

PyTorch's own places for hooks are used where there are some, and a few functions are wrapped: each wrapper says in one call of
the native library what begins or ends. What cannot be hooked in this version of PyTorch is left as it is.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from . import native


def begin(torch: Any, finder: Any, folder: str) -> None:
    """`folder`: which the launcher has put on PYTHONPATH."""
    # Processes that this one starts are no training processes, and pay nothing.
    leave_environment(folder)
    if not native.begin():
        return
    from . import deepspeed_checkpoints, stacks, torch_groups, torch_phases

    attempt(torch_phases.hook, torch, finder)
    attempt(torch_groups.hook, torch)
    attempt(deepspeed_checkpoints.hook, torch, finder)
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
