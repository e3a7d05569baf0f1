"""Steps and phases of a PyTorch script, from the places that every training loop passes."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from . import attempt, debug, native

OTHERS_BEFORE_CHANGE = 64  # steps of other optimizers without one of the first: the script has gone on to these


def hook(torch: Any, finder: Any) -> None:
    fed = 0
    for feed, each in (
        (native.FEED_OPTIMIZER, hook_optimizers),
        (native.FEED_PHASES, hook_backward),
        (native.FEED_INPUT, hook_data_loaders),
        (0, hook_modes),
        (0, hook_files),
    ):
        try:
            each(torch)
            fed |= feed
        except Exception as e:
            debug(f"{each.__name__}: {type(e).__name__}: {e}")
    native.library.troupe_feeds(fed)
    for name, module_name in (("save", "state_dict_saver"), ("load", "state_dict_loader")):
        finder.when_imported(
            f"torch.distributed.checkpoint.{module_name}",
            lambda module, name=name: attempt(wrap_checkpoint, module, name, ("torch.distributed.checkpoint",)),
        )
    finder.when_imported("troupe.checkpoint.checkpointer", lambda module: attempt(hook_checkpointer, module))


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


def hook_optimizers(torch: Any) -> None:
    from torch.optim import optimizer as module

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


def between(function: Any, begins: int, ends: int) -> Any:
    observed = native.library.troupe_observed

    @functools.wraps(function)
    def observed_function(*arguments: Any, **named: Any) -> Any:
        observed(begins)
        try:
            return function(*arguments, **named)
        finally:
            observed(ends)

    return observed_function


def hook_backward(torch: Any) -> None:
    # Tensor.backward calls it by this name.
    torch.autograd.backward = between(torch.autograd.backward, native.BACKWARD_BEGINS, native.BACKWARD_ENDS)


def hook_data_loaders(torch: Any) -> None:
    from torch.utils.data import dataloader

    observed, kind = native.library.troupe_observed, dataloader._BaseDataLoaderIter
    begins, ends, following = native.INPUT_BEGINS, native.INPUT_ENDS, kind.__next__

    @functools.wraps(following)
    def observed_next(self: Any) -> Any:
        observed(begins)
        try:
            return following(self)
        finally:
            observed(ends)

    kind.__next__ = observed_next


def hook_modes(torch: Any) -> None:
    observed, module = native.library.troupe_observed, torch.nn.Module
    train, evaluate = module.train, module.eval

    @functools.wraps(train)
    def observed_train(self: Any, mode: bool = True) -> Any:
        if mode:
            observed(native.TRAINING_BEGINS)
        return train(self, mode)

    @functools.wraps(evaluate)
    def observed_eval(self: Any) -> Any:
        result = evaluate(self)
        observed(native.EVALUATION_BEGINS)
        return result

    module.train, module.eval = observed_train, observed_eval


def checkpointing(function: Any) -> Any:
    enter, leave = native.library.troupe_phase_enter, native.library.troupe_phase_leave

    @functools.wraps(function)
    def observed_function(*arguments: Any, **named: Any) -> Any:
        enter(native.CHECKPOINT, None)
        try:
            return function(*arguments, **named)
        finally:
            leave(native.CHECKPOINT)

    return observed_function


def hook_files(torch: Any) -> None:
    for name in ("save", "load"):
        wrap_checkpoint(torch.serialization, name, ("torch",))


def wrap_checkpoint(module: Any, name: str, also_in: tuple[str, ...]) -> None:
    """A function, wherever its package has it by that name."""
    import sys

    original = getattr(module, name, None)
    if original is None:
        return  # not in this version
    wrapped = checkpointing(original)
    setattr(module, name, wrapped)
    for each in also_in:
        there = sys.modules.get(each)
        if there is not None and getattr(there, name, None) is original:
            setattr(there, name, wrapped)


def hook_checkpointer(module: Any) -> None:
    kind = module.Checkpointer
    for name in ("save_checkpoint", "load_checkpoint", "wait_latest_checkpoint"):
        if hasattr(kind, name):
            attempt(lambda name=name: setattr(kind, name, checkpointing(getattr(kind, name))))
