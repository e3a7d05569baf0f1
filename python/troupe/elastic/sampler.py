"""A distributed sampler whose place in the epoch is saved with the model, for a world of any size to go on from."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.utils.data import Dataset, DistributedSampler

from .share import Share

log = logging.getLogger("troupe.elastic")

Sample = TypeVar("Sample", covariant=True)
COUNT_MAX = 2**63 - 1


class ElasticDistributedSampler(DistributedSampler[Sample]):
    """torch's DistributedSampler, in the same order; `state_dict` says how far the world is in the epoch, and a sampler of any
    world that loads it goes on there: within the epoch no sample is left out or seen twice, but for what `drop_last` or filling
    up does at its very end.

        sampler = ElasticDistributedSampler(dataset)
        loader = ElasticDataLoader(dataset, batch_size=32, sampler=sampler)
        if state:
            sampler.load_state_dict(state["sampler"])
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for batch in loader:
                ...
                state = {"model": model.state_dict(), "sampler": sampler.state_dict()}

    `num_replicas` and `rank`: of torch.distributed, and one process alone where that is not initialised. The state is the same at
    all ranks: the one that rank 0 saves is everyone's.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            num_replicas, rank = num_replicas or 1, rank or 0
        super().__init__(dataset, num_replicas, rank, shuffle, seed, drop_last)
        self._counting = False  # the next iteration is a counting loader's
        # Where the next iteration of this epoch begins, and the script's count of steps there.
        self._next: tuple[int, int | None] = (0, 0)
        self._begin_at(0, 0)

    def _begin_at(self, place: int, steps: int | None) -> None:
        self._counted = False  # by a loader
        # Of the iteration that is under way, or the last one.
        self._start, self._start_steps = place, steps
        self._drawn = 0  # this rank's samples in it; a loader's workers draw ahead
        self._trained = 0  # those of them that a counting loader has handed to the script
        share = self._share()
        self.num_samples, self.total_size = share.each, share.each * share.world

    def _share(self) -> Share:
        size = len(self.dataset)  # type: ignore[arg-type]
        return Share(size, self._start, self.num_replicas, self.drop_last)

    def __len__(self) -> int:
        """This rank's samples of this iteration: of a resumed epoch, what is left of it."""
        return self.num_samples

    def __iter__(self) -> Iterator[Sample]:
        self._begin_at(*self._next)
        self._counted, self._counting = self._counting, False
        places = self._share().places(self.rank)
        size = len(self.dataset)  # type: ignore[arg-type]
        if not self.shuffle or not places:
            return self._drawing(place % size for place in places)
        random = torch.Generator()
        random.manual_seed(self.seed + self.epoch)
        order = torch.randperm(size, generator=random)
        mine = order[torch.arange(places.start, places.stop, places.step) % max(size, 1)]
        return self._drawing(iter(mine.tolist()))

    def _drawing(self, indices: Iterator[int]) -> Iterator[Any]:
        for index in indices:
            self._drawn += 1
            yield index
        # A script that never says which epoch it is in has a whole one next.
        self._next = (0, 0)

    def set_epoch(self, epoch: int) -> None:
        """Before each epoch, at all ranks. The epoch of a loaded state goes on where that was; any other one begins anew."""
        if epoch != self.epoch:
            self._next = (0, 0)
            super().set_epoch(epoch)
            self._begin_at(0, 0)

    @property
    def begins_within(self) -> bool:
        """Whether this iteration is the rest of an epoch."""
        return self._start > 0

    # ---- What a loader that counts says ----

    def count_by_loader(self) -> None:
        """Of the next iteration `trained` says what was trained on; without that it is the arguments of `state_dict`."""
        self._counting = True

    def trained(self, samples: int) -> None:
        """The script has got so many samples more of this rank's."""
        self._trained += samples

    # ---- States ----

    def state_dict(
        self, iter_step: float | None = None, micro_batch_size: int | None = None
    ) -> dict[str, Any]:
        """Where the world is in the epoch, with all batches counted that the script has got so far: call it after the step that
        the last of them is for.

        The arguments are DLRover's. With an `ElasticDataLoader` they do not matter, since it counts. With another loader,
        whose workers draw samples ahead, they are needed: `iter_step` steps of `micro_batch_size` samples each rank were made
        in this epoch, those before a restart included.

        Raises ValueError where they are missing or cannot be true: fewer steps than the loaded state had, or more than samples
        were drawn for (such a count is one of several epochs).
        """
        if self._counted or not self._drawn and iter_step is None:
            place = self._start + self._trained * self.num_replicas
            steps = None if iter_step is None else whole("iter_step", iter_step)
        elif iter_step is None or micro_batch_size is None:
            raise ValueError(
                "state_dict() of ElasticDistributedSampler: how many samples were trained on is not known, for a DataLoader draws "
                "them ahead: use ElasticDataLoader, which counts them, or give iter_step and micro_batch_size"
            )
        else:
            steps = whole("iter_step", iter_step)
            place = self._place_after(steps, whole("micro_batch_size", micro_batch_size))
        return {
            "completed_num": min(place, self._share().end),
            "epoch": self.epoch,
            "iter_step": steps,
            "dataset_size": len(self.dataset),  # type: ignore[arg-type]
            "seed": self.seed,
            "shuffle": self.shuffle,
        }

    def _place_after(self, steps: int, batch: int) -> int:
        """The place after so many of the script's steps; the last one of an epoch may have had fewer samples."""
        of_all = batch * self.num_replicas
        if self._start_steps is None:  # a state of DLRover's, as it is counted there
            made = steps * of_all - self._start
        else:
            made = (steps - self._start_steps) * of_all
        if made < 0:
            raise ValueError(
                f"iter_step is {steps}, and the state that was loaded has {self._start_steps or self._start // of_all} steps of "
                f"epoch {self.epoch} already: count the epoch's steps before the restart as well, or use ElasticDataLoader"
            )
        # Of a sampler that nothing is drawn from, because the script shares samples out by itself, only the whole is known.
        had = self._drawn * self.num_replicas or self._share().end - self._start
        if made >= had + of_all:
            raise ValueError(
                f"iter_step is {steps}, which is for more samples than the {had} that epoch {self.epoch} has had here: count each "
                "epoch's steps from 0, or use ElasticDataLoader, which needs no count"
            )
        return self._start + made

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was made; {} is the beginning. States of DLRover's sampler are taken as well.

        Raises ValueError for a state of another order: another data set's size, seed or shuffling.
        """
        epoch = whole("epoch", state.get("epoch", 0))
        place = whole("completed_num", state.get("completed_num", 0))
        size = len(self.dataset)  # type: ignore[arg-type]
        mine = {"dataset_size": size, "seed": self.seed, "shuffle": self.shuffle}
        for name, value in mine.items():
            if name in state and state[name] != value:
                raise ValueError(
                    f"the sampler's state was made with {name} {state[name]!r}, and this sampler has {value!r}: the order of "
                    "samples is another one, so the place in it means nothing; begin the epoch anew with load_state_dict"
                    f"({{'epoch': {epoch}}})"
                )
        steps = state.get("iter_step")
        counted = whole("iter_step", steps) if steps is not None else None if place else 0
        if "dataset_size" not in state and place > size > 0:
            log.warning(
                "the sampler's state counts %d samples of a data set of %d: DLRover's, of several epochs; the remainder is "
                "taken, as there, and some samples of epoch %d may be seen twice or not at all",
                place, size, epoch,
            )  # fmt: skip
            place %= size
        super().set_epoch(epoch)
        self._next = (place, counted)
        self._begin_at(*self._next)


def whole(name: str, number: Any) -> int:
    """A count; also a float without a fraction. Raises ValueError."""
    a_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not a_number or isinstance(number, float) and not number.is_integer():
        raise ValueError(f"the sampler's {name} is {number!r}; it is a whole number")
    if not 0 <= number <= COUNT_MAX:
        raise ValueError(f"the sampler's {name} is {number!r}; it is 0 or more")
    return int(number)
