"""Steps and phases of a PyTorch script, from the places that every training loop passes."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from . import attempt, debug, imports, native

OTHERS_BEFORE_CHANGE = 64  # steps of other optimizers without one of the first: the script has gone on to these


def hook(torch: Any) -> None:
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
    for name in ("save", "load"):
        imports.when_imported(
            f"torch.distributed.checkpoint.state_dict_{name}r",
            lambda module, name=name: wrap_checkpoint(module, name, ("torch.distributed.checkpoint",)),
        )
    imports.when_imported("troupe.checkpoint.checkpointer", hook_checkpointer)


class FirstOptimizer:
    """Of a script with several optimizers the first one's steps are counted, until it is gone or rests."""

    def __init__(self, observed: Callable[[int], None], compiling: Callable[[], bool]) -> None:
        self.observed = observed
        self.compiling = compiling
        self.first: Callable[[], Any] = lambda: None
        self.others = 0

    def begins(self, optimizer: Any, *_: object) -> None:
        if self.compiling():
            return
        if self.first() is not optimizer:
            self.others += 1
            if self.first() is None or self.others > OTHERS_BEFORE_CHANGE:
                self.first = weakref.ref(optimizer)
        self.observed(native.OPTIMIZER_BEGINS)

    def ends(self, optimizer: Any, *_: object) -> None:
        if self.compiling():
            return
        if self.first() is optimizer:
            self.others = 0
            self.observed(native.OPTIMIZER_ENDS)
        else:
            self.observed(native.MINOR_OPTIMIZER_ENDS)


def hook_optimizers(torch: Any) -> None:
    from torch.optim import optimizer as module

    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    first = FirstOptimizer(native.library.troupe_observed, is_compiling or (lambda: False))
    if hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_pre_hook(first.begins)
        module.register_optimizer_step_post_hook(first.ends)
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
            first.begins(self)
            try:
                result = step(self, *arguments, **named)
            except BaseException:
                first.observed(native.MINOR_OPTIMIZER_ENDS)
                raise
            first.ends(self)
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

    kind = dataloader._BaseDataLoaderIter
    kind.__next__ = between(kind.__next__, native.INPUT_BEGINS, native.INPUT_ENDS)


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

    original = getattr(module, name)
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
