"""A loader that counts what was trained on, and whose batch size may change while it runs."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from .batches import BatchSizeFile, ElasticBatchSampler
from .sampler import ElasticDistributedSampler, whole

log = logging.getLogger("troupe.elastic")

FILE_VARIABLE = "DLROVER_PARAL_CONFIG_PATH"
LOOKED_AT = 16  # batches, after which the file is looked at again


class ElasticDataLoader(DataLoader):
    """torch's DataLoader, with its arguments. Of an `ElasticDistributedSampler` it counts the batches that the script has got,
    so that the sampler's state is exact, whatever number of workers prepares batches ahead.

    `update_batch_size` changes the size, and so does `config_file` (or the file that DLROVER_PARAL_CONFIG_PATH names), a file
    as DLRover's (`BatchSizeFile`). In a world of several ranks the same size has to hold at all of them from the same batch
    on, or their numbers of batches differ and the last ones wait for ever. So there rank 0's file counts, for loaders with a
    DistributedSampler: the ranks agree through gloo when an iteration begins and after each 16 batches. Such a loader, if
    it has a file, is iterated by all ranks; others read the file once.

    Raises ValueError for what it could not count or change: `batch_sampler`, `batch_size=None` and `in_order=False`.
    """

    def __init__(self, *args: Any, config_file: str | os.PathLike | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        made = self.batch_sampler
        if type(made) is not BatchSampler or made.sampler is not self.sampler:
            raise ValueError(
                "ElasticDataLoader makes its batches itself, or it could not count them: give sampler and batch_size, not "
                "batch_sampler, nor batch_size=None"
            )
        if not getattr(self, "in_order", True):
            raise ValueError(
                "ElasticDataLoader: with in_order=False a place in the epoch does not say what was trained on"
            )
        self._batches = ElasticBatchSampler(made.sampler, made.batch_size, made.drop_last)
        # torch forbids this from outside, since its iterators would not notice; none has been made.
        self.__dict__["batch_sampler"] = self._batches
        named = config_file or os.environ.get(FILE_VARIABLE)
        self.config_file = os.fspath(named) if named else None
        self._file = BatchSizeFile(self.config_file) if self.config_file else None
        self._group: Any = None  # in which the ranks agree
        self._given = 0  # batches of this epoch, with those before a restart
        self._before = 0  # those alone
        if isinstance(self.sampler, ElasticDistributedSampler):
            # A loader that has these is one whose place trainers keep and load, as torchdata's.
            self.state_dict = self._state_dict
            self.load_state_dict = self._load_state_dict
        self.load_config()

    @property
    def batch_size(self) -> int | None:  # type: ignore[override]
        """Of the next batch that is prepared."""
        batches = self.__dict__.get("batch_sampler")
        return batches.batch_size if batches is not None else self.__dict__.get("_declared_size")

    @batch_size.setter
    def batch_size(self, size: int | None) -> None:
        self.__dict__["_declared_size"] = size  # by DataLoader's constructor

    def get_batch_size(self) -> int:
        return self._batches.batch_size

    def update_batch_size(self, batch_size: int | None = None) -> None:
        """From the next batch that is prepared on; those that workers have under way keep theirs. With several ranks: at all of
        them, after the same batch. Without a size the file is looked at, where this rank need not agree with others.

        Raises ValueError.
        """
        if batch_size is not None:
            self._change(batch_size)
        elif not self._in_step():
            self.load_config()

    def load_config(self, config_file: str | os.PathLike | None = None) -> None:
        """Takes what the file says, or another one, at this rank alone."""
        file = BatchSizeFile(config_file) if config_file else self._file
        if file and (size := file.change()):
            self._change(size)

    def _change(self, size: int) -> None:
        if size != self._batches.batch_size:
            log.info("batch size %d, after %d", size, self._batches.batch_size)
        self._batches.batch_size = size

    def _in_step(self) -> bool:
        """Other ranks have to change with this one."""
        distributed = isinstance(self.sampler, DistributedSampler) and self.sampler.num_replicas > 1
        return distributed and dist.is_available() and dist.is_initialized()

    def _look(self) -> None:
        if self._file is None:
            return
        alone = not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1
        if alone:
            self.load_config()
        elif self._in_step():
            if dist.get_rank() == 0:
                self.load_config()
            if self._group is None:
                self._group = dist.new_group(backend="gloo")
            said = torch.tensor([self._batches.batch_size])
            dist.broadcast(said, src=0, group=self._group)
            self._change(int(said))

    # ---- The place in the epoch, if the sampler knows it ----

    def _state_dict(self) -> dict[str, Any]:
        """The sampler's, with how many batches of the epoch the script has got."""
        return {**self.sampler.state_dict(), "batches": self._given}

    def _load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Also a sampler's state. The epoch that goes on is as long as it is for a trainer that has counted its batches from the
        beginning, in whatever world they were. Raises ValueError as the sampler does."""
        self.sampler.load_state_dict(state)
        self._given = self._before = whole("batches", state.get("batches", 0))

    def __len__(self) -> int:
        """Batches: of a resumed epoch those that are left, and those before if this loader's own state was loaded."""
        return super().__len__() + self._given_before()

    def _given_before(self) -> int:
        resumed = isinstance(self.sampler, ElasticDistributedSampler) and self.sampler.begins_within
        return self._before if resumed else 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._look()
        self._given = self._given_before()
        if isinstance(self.sampler, ElasticDistributedSampler):
            self.sampler.count_by_loader()
        batches = super().__iter__()
        return self._counting(batches, self._batches.on_their_way)

    def _counting(self, batches: Iterator[Any], on_their_way: deque[int]) -> Iterator[Any]:
        for number, batch in enumerate(batches, 1):
            samples = on_their_way.popleft()
            if isinstance(self.sampler, ElasticDistributedSampler):
                self.sampler.trained(samples)
            self._given += 1
            yield batch
            if number % LOOKED_AT == 0:
                self._look()
        self._before = 0
