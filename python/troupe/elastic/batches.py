"""Batches whose size may change from one to the next, and the file that says so."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler

log = logging.getLogger("troupe.elastic")

BATCH_MAX = 1 << 20  # samples
FILE_MAX = 1 << 20  # bytes


def valid_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 < size <= BATCH_MAX


class ElasticBatchSampler(BatchSampler):
    """torch's BatchSampler that looks at `batch_size` before each batch, with `drop_last` too.

    `on_their_way`: of the iteration that began last, the samples of each batch that was drawn and not handed to the script;
    workers of a loader prepare some ahead. The loader takes them out at the front.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.on_their_way: deque[int] = deque()
        super().__init__(sampler, batch_size, drop_last)

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @batch_size.setter
    def batch_size(self, size: int) -> None:
        if not valid_size(size):
            raise ValueError(f"batch_size is {size!r}; it is a whole number from 1 to {BATCH_MAX}")
        self._batch_size = size

    def __iter__(self) -> Iterator[list[int]]:
        self.on_their_way = deque()
        return self._drawing(self.on_their_way)

    def _drawing(self, on_their_way: deque[int]) -> Iterator[list[int]]:
        samples = iter(self.sampler)
        while batch := list(islice(samples, self._batch_size)):
            if self.drop_last and len(batch) < self._batch_size:
                return
            on_their_way.append(len(batch))
            yield batch


class BatchSizeFile:
    """DLRover's file of settings: `{"dataloader": {"batch_size": 64, "version": 3}}`, where a larger version than the last one
    means a change. It is read when it has changed. What is wrong with it is told once, and the size stays."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = os.fspath(path)
        self._seen: tuple[int, ...] = ()
        self._version = 0

    def change(self) -> int | None:
        """The size that a version has brought which was not there before."""
        try:
            with open(self.path, "rb") as file:
                facts = os.fstat(file.fileno())
                seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
                if seen == self._seen:
                    return None
                self._seen = seen
                text = file.read(FILE_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(error.strerror or str(error))
            return None
        try:
            return self._newer(text)
        except (ValueError, RecursionError) as error:
            self._tell(str(error))
            return None

    def _newer(self, text: bytes) -> int | None:
        if len(text) > FILE_MAX:
            raise ValueError(f"it has more than {FILE_MAX} bytes")
        settings = json.loads(text)
        if not isinstance(settings, dict):
            raise ValueError("it is no JSON object")
        if "dataloader" not in settings:
            return None
        loader = settings["dataloader"]
        if not isinstance(loader, dict):
            raise ValueError('"dataloader" is no JSON object')
        version, size = loader.get("version", 0), loader.get("batch_size", 0)
        if not isinstance(version, int) or not isinstance(size, int):
            raise ValueError('"version" and "batch_size" are whole numbers')
        if version <= self._version or size == 0:
            return None
        if not valid_size(size):
            raise ValueError(f'"batch_size" is {size}; it is from 1 to {BATCH_MAX}')
        self._version = version
        return size

    def _tell(self, what: str) -> None:
        log.warning("%s says no batch size: %s; it stays as it is", self.path, what)
