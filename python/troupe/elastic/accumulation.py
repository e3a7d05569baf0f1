"""When a micro-batch ends a step of the optimizer, and what may be done to gradients meanwhile. No torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class GradientState:
    """Where a trainer is between two steps of its optimizer. A window is the micro-batches of one step.

    `sync_gradients`: the micro-batch that began last ends its window; True before the first. `num_steps`: windows that have ended.
    `num_backward_steps`: micro-batches begun. `pending`: those of this window that have ended.
    """

    sync_gradients: bool = True
    num_steps: int = 0
    num_backward_steps: int = 0
    pending: int = 0
    inside: bool = False  # a micro-batch is under way
    computed: bool = False  # its gradients are there
    window: int = 1

    def begin(self, window: int) -> None:
        """A micro-batch of a window of so many."""
        self.num_backward_steps += 1
        self.window, self.inside, self.computed = window, True, False
        self.sync_gradients = self.pending + 1 >= window

    def end(self, *, failed: bool = False) -> None:
        """It is over. One that failed does not count, and the next one takes its place."""
        self.inside = False
        if not failed and self.sync_gradients:
            self.num_steps += 1
            self.pending = 0
        elif not failed:
            self.pending += 1

    def may_step(self) -> bool:
        """Outside of a micro-batch a script knows what it does."""
        return not self.inside or self.sync_gradients

    def may_zero(self) -> bool:
        """Scripts zero gradients before the backward pass or after the step. Either is right once in a window: where nothing
        is lost that the optimizer has not had."""
        if not self.inside or self.window == 1:
            return True
        return self.sync_gradients if self.computed else self.pending == 0


def window_of(micro_batches: int, world: int) -> int:
    """How many micro-batches each rank accumulates so that all of them together come closest to `micro_batches`; the more of
    two that are as close. The same number at each rank: ranks that synchronise after different numbers would mix
    gradients of different steps."""
    return max(1, (2 * micro_batches + world) // (2 * world))
