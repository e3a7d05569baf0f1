"""What each rank gets of an epoch that a world of another size has begun. Numbers only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """An epoch is one order of all samples; a place in it is how many of them were trained on, by all ranks together.

    Ranks take turns from `start` on, so after a step that all of them made, everything before one place is done and
    nothing behind it: a place says all that a world of any size has to know. Where the ranks cannot all have the same
    number, the order goes on with its own beginning, as in torch's DistributedSampler, or `drop_last` leaves the rest out.

    `size`: samples of the data set. `start`: 0 to any number; an epoch that was filled up may have ended behind `size`.
    """

    size: int
    start: int
    world: int
    drop_last: bool

    @property
    def each(self) -> int:
        """Samples for each rank: the same for all, 0 if the epoch is over."""
        left = max(0, self.size - self.start)
        return left // self.world if self.drop_last else -(-left // self.world)

    @property
    def end(self) -> int:
        """The place behind the last sample of any rank."""
        return self.start + self.each * self.world

    def places(self, rank: int) -> range:
        """Of `rank`'s samples; what is behind the order's end is taken from its beginning, by the remainder of `size`."""
        return range(self.start + rank, self.end, self.world)
