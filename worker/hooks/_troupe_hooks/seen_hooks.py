"""Steps of optimizers in a PyTorch whose optimizers ask for no hooks (before 2.0), or ask in another order.

These hooks are functions of Python, which a script could see: PyTorch's own place for them is used where there is one.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from . import native

OTHERS_BEFORE_CHANGE = 64  # steps of other optimizers without one of the first: the script has gone on to these

Hook = Callable[[Any, Any, Any], None]


def optimizer_hooks(observed: Callable[[int], None], compiling: Callable[[], bool]) -> tuple[Hook, Hook]:
    """Before and after a step. Of several optimizers the first one's steps are counted, until it is gone or rests.

    Closures, since an attribute of an object would be looked up in each step.
    """
    begins, ends, minor_ends = native.OPTIMIZER_BEGINS, native.OPTIMIZER_ENDS, native.MINOR_OPTIMIZER_ENDS
    first: Callable[[], Any] = lambda: None
    others = 0

    def choose(optimizer: Any) -> None:
        nonlocal first, others
        others += 1
        if first() is None or others > OTHERS_BEFORE_CHANGE:
            first, others = weakref.ref(optimizer), 0

    def before(optimizer: Any, _arguments: Any, _named: Any) -> None:
        if compiling():
            return
        if first() is not optimizer:
            choose(optimizer)
        observed(begins)

    def after(optimizer: Any, _arguments: Any, _named: Any) -> None:
        nonlocal others
        if compiling():
            return
        if first() is optimizer:
            others = 0
            observed(ends)
        else:
            observed(minor_ends)

    return before, after


def hook_optimizers(torch: Any, module: Any) -> None:
    """`module`: torch.optim.optimizer."""
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    observed = native.library.troupe_observed
    before, after = optimizer_hooks(observed, is_compiling or (lambda: False))
    if hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)
        return
    # Before PyTorch 2.0 every class's step was wrapped once by the first of its objects.
    wrapped = module.Optimizer._hook_for_profile

    @functools.wraps(wrapped)
    def hook_for_profile(self: Any) -> None:
        wrapped(self)
        step = type(self).step
        if getattr(step, "troupe", False):
            return

        @functools.wraps(step)
        def counted(self: Any, *arguments: Any, **named: Any) -> Any:
            before(self, arguments, named)
            try:
                result = step(self, *arguments, **named)
            except BaseException:
                observed(native.MINOR_OPTIMIZER_ENDS)
                raise
            after(self, arguments, named)
            return result

        counted.troupe = counted.hooked = True  # type: ignore[attr-defined]
        type(self).step = counted

    module.Optimizer._hook_for_profile = hook_for_profile
