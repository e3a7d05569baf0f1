"""Why Megatron could not load a step: one error, which names rank, file and step, whatever Megatron does about it.

For some of what it cannot read Megatron prints a line and ends the process with status 0, and a launcher takes that for the end
of training. Other errors name a key of a dictionary, or a directory that is a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint import CheckpointException

from ..dcp import metadata as of_step
from ..files import first_line, open_regular
from ..library import CheckpointError
from .checkpointer import TRACKER, TRACKER_BYTES, directory_of
from .sharded import COMMON, CONFIG

RELEASE = "release"  # a tracker may say instead of a step
OF_TORCH = "mp_rank_*/model_optim_rng.pt"  # of a step in the format torch, whatever the parallel sizes
_CONFIG_BYTES = 1 << 16
_STEP = re.compile(r"iter_([0-9]+)")


class Failures:
    """Of one load. `place`: where Megatron looks for steps. `shown`: what it is called, if that is another."""

    def __init__(self, rank: int, place: str, args: Any, shown: str = ""):
        self._rank, self._place, self._args, self._shown = rank, place, args, shown or place
        self.read = ""  # the file that was read last
        self.said = ""  # by Megatron, the last
        self.error: CheckpointError | None = None  # of that file, if it could not be read

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """While Megatron loads. Raises CheckpointError."""
        try:
            yield
        except SystemExit as end:
            if not self.error and not self._looked_at():
                raise  # --exit-on-missing-checkpoint
            raise self._named(self.said or "Megatron ends this process") from end
        except CheckpointError:
            raise
        except CheckpointException as error:  # PyTorch's, of all ranks, and no Exception
            raise self._of_ranks(error) from error
        except Exception as error:
            if not self._looked_at():
                raise
            raise self._named(_with_kind(error)) from error

    def damaged(self, path: str | os.PathLike, error: Exception) -> CheckpointError:
        """Of a file that cannot be read."""
        plain = isinstance(error, (CheckpointError, OSError))
        self.error = self._of(os.fspath(path), first_line(error) if plain else _with_kind(error))
        return self.error

    def _of_ranks(self, error: CheckpointException) -> CheckpointError:
        named = [str(one) for one, _ in error.failures.values() if isinstance(one, CheckpointError)]
        if named:
            return CheckpointError("; ".join(named))
        rank, (first, _) = next(iter(error.failures.items()), (self._rank, (error, None)))
        return self._named(f"at rank {rank}: {_with_kind(first)}")

    def _named(self, why: str) -> CheckpointError:
        """The reason may be another rank's end as well: so no file is said to be at fault, but which was read last."""
        looked_at = self._looked_at()
        is_step = os.path.isdir(looked_at)
        if is_step and (formats := two_formats(looked_at)):
            return self._of(looked_at, formats)
        if self.error:
            return self.error
        if is_step and (config := bad_config(looked_at)):
            return self._of(os.path.join(looked_at, CONFIG), config)
        last = f"; the last file that was read: {self.read}" if self.read.startswith(looked_at + os.sep) else ""
        return self._of(looked_at, f"it could not be loaded: {why}{last}")

    def _of(self, path: str, why: str) -> CheckpointError:
        line = f"rank {self._rank}: {path}{of_step_at(path)}: {why}"
        return CheckpointError(line.replace(self._place, self._shown))

    def _looked_at(self) -> str:
        """The directory of the step that Megatron loads, or the tracker if that names none; "" where there is no checkpoint."""
        if step := getattr(self._args, "ckpt_step", None):
            return os.path.join(self._place, directory_of(step))
        path = os.path.join(self._place, TRACKER)
        try:
            with open_regular(path) as tracker:
                name = os.fsdecode(tracker.read(TRACKER_BYTES).strip())
        except FileNotFoundError:
            return ""
        except OSError:
            return path
        if name.isdecimal():
            name = directory_of(int(name))
        elif name != RELEASE:
            return path
        return os.path.join(self._place, name)


def two_formats(directory: str) -> str:
    """What says that two saves in different formats have left files in a step's directory; "" if nothing does.

    Megatron takes such a step for one of torch_dist, and then looks for it in a file of the format torch.
    """
    of_torch = next(Path(directory).glob(OF_TORCH), None)
    sharded = next((name for name in (CONFIG, of_step.NAME) if os.path.exists(os.path.join(directory, name))), None)
    if of_torch is None or sharded is None:
        return ""
    return (
        f"it has files of two formats, {of_torch.relative_to(directory)} of torch and {sharded} of torch_dist or torch_dcp: move "
        "those of one of them elsewhere"
    )


def bad_config(directory: str) -> str:
    """What is wrong with the file that says how those of torch_dist are read, if anything is."""
    try:
        with open_regular(os.path.join(directory, CONFIG)) as file:
            json.loads(file.read(_CONFIG_BYTES))
    except FileNotFoundError as error:
        return str(error.strerror) if os.path.exists(os.path.join(directory, COMMON)) else ""
    except (OSError, ValueError) as error:
        return f"it is no JSON: {first_line(error)}"
    return ""


def _with_kind(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def of_step_at(path: str | os.PathLike) -> str:
    found = _STEP.search(os.fspath(path))
    return f" of step {int(found[1])}" if found else ""


def step_of(directory: str) -> int | None:
    match = _STEP.fullmatch(os.path.basename(directory))
    return int(match[1]) if match else None
