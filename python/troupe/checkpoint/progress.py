"""What a user asks after a failure: from where training goes on, and when its first step was made.

Rank 0 says it, on stderr. The launcher has told when the processes ran again; what comes between is the program's own start.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

try:
    from torch.optim.optimizer import register_optimizer_step_post_hook
except ImportError:  # torch before 2.0 does not say when an optimizer has made a step
    register_optimizer_step_post_hook = None

CHECKPOINT = 5  # TROUPE_CHECKPOINT
HOOKS = "_troupe_hooks.native"  # there in a process that has taken the launcher's page
FAILED_AT = "TROUPE_FAILED_AT"  # seconds by CLOCK_MONOTONIC, set where a failure led to this start of the workers


def tell(text: str) -> None:
    print(f"troupe: {text}", file=sys.stderr, flush=True)


def since_failure() -> str:
    """ "4.1 s after the failure"; empty if none led to this process."""
    try:
        return f"{time.monotonic() - float(os.environ[FAILED_AT]):.1f} s after the failure"
    except (KeyError, ValueError):
        return ""


def launcher_tells_it() -> bool:
    """The launcher hears of the first step on its channel, and says so itself."""
    return getattr(sys.modules.get(HOOKS), "on_channel", False)


def is_checkpoint(method: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: while it runs, the launcher sees that this process is in a checkpoint."""

    @functools.wraps(method)
    def seen(*arguments: Any, **named: Any) -> Any:
        library = getattr(sys.modules.get(HOOKS), "library", None)
        if library is None:
            return method(*arguments, **named)
        library.troupe_phase_enter(CHECKPOINT, None)
        try:
            return method(*arguments, **named)
        finally:
            library.troupe_phase_leave(CHECKPOINT)

    return seen


class _FirstStep:
    """Once in a process: the first step of any optimizer."""

    def __init__(self) -> None:
        self._awaited = False

    def await_it(self) -> None:
        if self._awaited or not since_failure() or not register_optimizer_step_post_hook:
            return
        self._awaited = True
        self._hook = register_optimizer_step_post_hook(self._made)

    def _made(self, *_: object) -> None:
        self._hook.remove()
        if launcher_tells_it():
            return
        tell(f"the first step was made {since_failure()}")


_first_step = _FirstStep()


def tell_first_step() -> None:
    """Where a failure led to this process."""
    _first_step.await_it()
