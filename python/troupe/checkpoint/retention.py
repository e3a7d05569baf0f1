"""Where a state goes, and which steps are kept: names and arguments are those of DLRover's flash checkpoint."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass


class StorageType(enum.Enum):
    """What `save_checkpoint` is asked for. A state that goes to the disk goes through memory."""

    MEMORY = 0
    DISK = 1


@dataclass(frozen=True)
class KeepLatestStep:
    """Keeps the `max_to_keep` newest complete steps, the newest one counted."""

    max_to_keep: int
    checkpoint_dir: str | os.PathLike

    def __post_init__(self) -> None:
        require_positive("KeepLatestStep: max_to_keep", self.max_to_keep)


@dataclass(frozen=True)
class KeepStepInterval:
    """Keeps the complete steps that are multiples of `keep_interval`, and always the newest one."""

    keep_interval: int
    checkpoint_dir: str | os.PathLike

    def __post_init__(self) -> None:
        require_positive("KeepStepInterval: keep_interval", self.keep_interval)


DeletionStrategy = KeepLatestStep | KeepStepInterval


def require_positive(what: str, number: int, most: int = 2**63 - 1) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= most:
        raise ValueError(f"{what} is {number!r}; it is a whole number from 1 to {most}")


def kept(strategy: DeletionStrategy | None, checkpoint_dir: str) -> tuple[int, int]:
    """How many of the newest steps a strategy keeps, and multiples of what; 0: no such rule.

    Raises ValueError for a strategy of another directory or of another class.
    """
    if strategy is None:
        return 0, 0
    if not isinstance(strategy, DeletionStrategy):
        raise ValueError(
            f"deletion_strategy: a {type(strategy).__name__} is code of its own; use KeepLatestStep or KeepStepInterval "
            "of troupe.checkpoint"
        )
    if os.path.abspath(strategy.checkpoint_dir) != checkpoint_dir:
        raise ValueError(
            f"deletion_strategy: it is for {strategy.checkpoint_dir}, and the checkpoints are in {checkpoint_dir}"
        )
    if isinstance(strategy, KeepLatestStep):
        return strategy.max_to_keep, 0
    return 0, strategy.keep_interval
