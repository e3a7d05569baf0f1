"""Steps of the optimizer that are made of as many samples in a small world as in a large one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist

from .accumulation import GradientState, window_of

log = logging.getLogger("troupe.elastic")

MICRO_BATCHES_MAX = 1 << 20


class ElasticOptimizer(torch.optim.Optimizer):
    """Stands before an optimizer: steps only where a window ends, and zeroes gradients only where none is lost. All else is
    the optimizer's own."""

    def __init__(self, optimizer: torch.optim.Optimizer, state: GradientState) -> None:
        # Optimizer's own constructor is left out: it would begin a state beside the optimizer's.
        self.optimizer = optimizer
        self.gradient_state = state

    def __getattr__(self, name: str) -> Any:
        if name in ("optimizer", "gradient_state"):  # while this is unpickled
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    @property
    def state(self) -> Any:
        return self.optimizer.state

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups

    @property
    def defaults(self) -> Any:
        return self.optimizer.defaults

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """GradScaler asks this at the beginning of its step, and would unscale gradients that others are added to later."""
        if not self.gradient_state.may_step():
            raise RuntimeError(
                "GradScaler.step within a window of ElasticTrainer: call it, and update, only if trainer.sync_gradients"
            )
        return bool(getattr(self.optimizer, "_step_supports_amp_scaling", False))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def step(self, closure: Callable[[], float] | None = None) -> Any:
        if self.gradient_state.may_step():
            return self.optimizer.step() if closure is None else self.optimizer.step(closure)
        return None

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self.gradient_state.may_zero():
            self.optimizer.zero_grad(set_to_none)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"ElasticOptimizer({self.optimizer!r})"


class ElasticLRScheduler:
    """Stands before a scheduler of the learning rate: within a micro-batch it steps where the optimizer does; outside, always."""

    def __init__(self, scheduler: Any, state: GradientState) -> None:
        self.scheduler = scheduler
        self.gradient_state = state

    def __getattr__(self, name: str) -> Any:
        if name in ("scheduler", "gradient_state"):
            raise AttributeError(name)
        return getattr(self.scheduler, name)

    def step(self, *args: Any, **kwargs: Any) -> None:
        if self.gradient_state.may_step():
            self.scheduler.step(*args, **kwargs)


class ElasticTrainer:
    """Keeps the global batch, the samples of one step of the optimizer, at the same size in worlds of different sizes.

        trainer = ElasticTrainer(model, loader)
        optimizer, scheduler = trainer.prepare(optimizer, scheduler)
        for x, y in loader:
            with trainer.step(fix_total_batch_size=True):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()

    The loop stays as it is. Where the world is smaller than the full one, gradients of several micro-batches are added up before
    the optimizer steps and the ranks synchronise; calls of `optimizer.step`, `optimizer.zero_grad` and `scheduler.step` in
    between do nothing. A failure within a window loses it: save where `sync_gradients` is True.

    `micro_batches`: of the full world, in one step; one at each rank. Without it WORKER_NUM (nodes of the full world, as
    DLRover's pods have it) times LOCAL_WORLD_SIZE, and without that as many as ranks are here: then nothing is accumulated.
    Where a world does not divide it the nearest multiple is taken, and a warning says which. `average`: gradients are
    divided by the number of micro-batches, so that a step is that of the full world; False leaves their sum, for scripts that
    divide the loss by `gradient_accumulation_steps`. Parameters have to require gradients when `prepare` is called.
    """

    def __init__(
        self,
        model: Any,
        dataloader: Any = None,
        *,
        micro_batches: int | None = None,
        average: bool = True,
    ) -> None:
        """Raises ValueError for a number of micro-batches that is none."""
        self.model = model
        self.dataloader = dataloader
        self.gradient_state = GradientState()
        self.gradient_accumulation_steps = 1
        self._average = average
        self._hooked = False
        self._micro_batches = micro_batches
        if micro_batches is not None:
            require_count("micro_batches", micro_batches)

    @property
    def num_steps(self) -> int:
        """Of the optimizer, since the beginning or `reset`."""
        return self.gradient_state.num_steps

    @property
    def sync_gradients(self) -> bool:
        """The micro-batch that began last ends a step of the optimizer."""
        return self.gradient_state.sync_gradients

    def reset(self) -> None:
        self.gradient_state.num_steps = 0

    def prepare(self, optimizer: Any, lr_scheduler: Any = None) -> Any:
        """The optimizer, or (optimizer, scheduler), to be used in the loop. After the process group is there.

        Raises TypeError for a model that is no torch.nn.Module, if gradients have to be accumulated.
        """
        self._plan()
        prepared = ElasticOptimizer(optimizer, self.gradient_state)
        if lr_scheduler is None:
            return prepared
        return prepared, ElasticLRScheduler(lr_scheduler, self.gradient_state)

    def _plan(self) -> None:
        world = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
        micro_batches = self._micro_batches or from_environment() or world
        self.gradient_accumulation_steps = window_of(micro_batches, world)
        made = self.gradient_accumulation_steps * world
        if made != micro_batches:
            log.warning(
                "a step of the optimizer has %d micro-batches instead of %d: a world of %d cannot divide that",
                made, micro_batches, world,
            )  # fmt: skip
        if self.gradient_accumulation_steps > 1 and not self._hooked:
            self._watch_gradients()

    def _watch_gradients(self) -> None:
        if not isinstance(self.model, torch.nn.Module):
            raise TypeError(
                f"ElasticTrainer: gradients are to be accumulated, and the model is a {type(self.model).__name__}, no "
                "torch.nn.Module"
            )
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                parameter.register_hook(self._computed)
        self._hooked = True

    def _computed(self, gradient: torch.Tensor) -> torch.Tensor | None:
        """Before a gradient is added to those of the window, and before DDP reduces the sum."""
        state = self.gradient_state
        state.computed = True
        if self._average and state.inside and state.window > 1:
            return gradient / state.window
        return None

    @contextmanager
    def step(self, fix_total_batch_size: bool = False) -> Iterator[None]:
        """One micro-batch: forward, backward, and what follows. False: it is a step of the optimizer, in any world.

        Raises RuntimeError if gradients should be accumulated and those of the parameters were not computed here.
        """
        state = self.gradient_state
        state.begin(self.gradient_accumulation_steps if fix_total_batch_size else 1)
        try:
            with self._synchronised(state.sync_gradients):
                yield
        except BaseException:
            state.end(failed=True)
            raise
        missing = state.window > 1 and not state.computed
        state.end(failed=missing)
        if missing:
            raise RuntimeError(
                "ElasticTrainer: no gradient of the model's parameters was computed in this step, so none was accumulated. The "
                "backward pass belongs into the step; and of models that compute gradients of other tensors than their "
                "parameters (FSDP2, FSDP with use_orig_params, DeepSpeed) the framework's own accumulation has to be used"
            )

    def _synchronised(self, yes: bool) -> AbstractContextManager[Any]:
        """A window's last micro-batch synchronises the ranks; DDP and FSDP leave that out for the others."""
        return nullcontext() if yes else getattr(self.model, "no_sync", nullcontext)()


def from_environment() -> int | None:
    """Ranks of the full world, by the variables of DLRover's pods. Raises ValueError."""
    nodes = os.environ.get("WORKER_NUM", "")
    if not nodes:
        return None
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "1")
    numbers = []
    for name, text in (("WORKER_NUM", nodes), ("LOCAL_WORLD_SIZE", ranks)):
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ValueError(f"{name} is {text!r}; it is a whole number")
        numbers.append(int(text))
    product = numbers[0] * numbers[1]
    if product:
        require_count("WORKER_NUM times LOCAL_WORLD_SIZE", product)
    return product or None


def require_count(name: str, number: Any) -> None:
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or not 0 < number <= MICRO_BATCHES_MAX:
        raise ValueError(
            f"{name} is {number!r}; it is a whole number from 1 to {MICRO_BATCHES_MAX}"
        )
