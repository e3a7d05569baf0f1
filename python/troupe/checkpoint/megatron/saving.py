"""save_checkpoint and load_checkpoint: Megatron's, and a snapshot for the disk.

Without this each save of Megatron's keeps training waiting until the disk has everything, and after a failure everything is
read from there. With it a save is a copy in memory, a restart reads memory, and files and tracker are Megatron's.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any

from ..contents import Files
from ..dcp.writer import FailedFiles
from ..ranks import Rank
from ..retention import DeletionStrategy, KeepStepInterval, StorageType
from .capture import Capture, require_a_path
from .checkpointer import MegatronCheckpointer, Options, directory_of, of_job
from .installed import arguments, checkpointing
from .loading import StepInMemory, StepOnDisk
from .sharded import NotKept, ShardedSave

log = logging.getLogger("troupe.checkpoint")


def save_checkpoint(
    *positional: Any,
    storage_type: StorageType = StorageType.DISK,
    storage: None = None,
    comm_backend: str = "",
    deletion_strategy: DeletionStrategy | None = None,
    save_timeout: float = 600,
    replica_count: int = 0,
    **named: Any,
) -> bool:
    """In the place of Megatron's, with all of its arguments: `save_checkpoint(iteration, model, optimizer, opt_param_scheduler,
    num_floating_point_operations_so_far=0, ...)`. All ranks call it.

    What Megatron would write to `args.save` is kept in memory, and with DISK it is written behind training, under Megatron's
    names; the tracker names the step when all of it is there. With MEMORY nothing on the disk changes. The other arguments as
    for DdpCheckpointer; `--save-retain-interval` is KeepStepInterval, and `--async-save` has no meaning here.

    Returns False at all ranks, and logs why, if the step could not be kept. Raises ImportError without Megatron-LM, TypeError
    for arguments that its version does not have, ValueError and CheckpointError as DdpCheckpointer does, and what Megatron raises.
    """
    megatron = checkpointing()
    values, by_place = arguments(megatron.save_checkpoint, positional, named)
    storage_type = by_place or storage_type
    _require_no_storage(storage)
    if values.get("release") or values.get("non_persistent_ckpt"):
        return _by_megatron_alone(megatron, values, storage_type)
    args, step = megatron.get_args(), values["iteration"]
    place = require_a_path(args.save, "--save")
    options = _options(args, place, save_timeout, replica_count, deletion_strategy)
    checkpointer = of_job(place, comm_backend, options)
    capture = Capture(megatron, args, place, directory_of(step))
    sharded = ShardedSave(checkpointer, capture, step, storage_type)
    try:
        with capture(), sharded():
            megatron.save_checkpoint(**values)
    except NotKept:
        return False
    if sharded.done:
        checkpointer.agree()
        return True
    return _keep(checkpointer, capture, step, storage_type)


def load_checkpoint(
    *positional: Any,
    storage: None = None,
    comm_backend: str = "",
    deletion_strategy: DeletionStrategy | None = None,
    save_timeout: float = 600,
    replica_count: int = 0,
    **named: Any,
) -> tuple[int, int]:
    """In the place of Megatron's, with all of its arguments: `load_checkpoint(model, optimizer, opt_param_scheduler,
    load_arg="load", strict=True, ...)`. All ranks call it. Iteration, and floating-point operations so far (0 before 0.5).

    From memory if all ranks together have a step of this job there, and else what `args.load` has, by Megatron itself. If
    that is this job's own place, a damaged step is passed over. `--ckpt-step`, `--finetune` and a tracker that was set back
    by hand say what a job begins with, and nothing to workers that are started again.

    The other arguments as for save_checkpoint. Raises CheckpointError that names file, rank and step for what Megatron
    cannot load.
    """
    megatron = checkpointing()
    _require_no_storage(storage)
    values, _ = arguments(megatron.load_checkpoint, positional, named)
    args = megatron.get_args()
    load_arg = values.get("load_arg", "load")
    from_place = getattr(args, load_arg, None)
    if not args.save or load_arg != "load":  # a teacher, or pretrained weights
        return _loaded(megatron, args, values, from_place)
    place = require_a_path(args.save, "--save")
    options = _options(args, place, save_timeout, replica_count, deletion_strategy)
    checkpointer = of_job(place, comm_backend, options)
    asked = bool(
        getattr(args, "finetune", False)
        or getattr(args, "ckpt_step", None)
        or getattr(args, "override_ckpt_iteration", None)
    )
    load_place = os.path.abspath(from_place) if from_place else ""
    found = checkpointer.step_to_go_on_from(load_place, asked)
    if found is None or found.directory:
        loaded = _loaded(megatron, args, values, from_place)
        checkpointer.resumed_from = loaded[0] or None if load_place == place else None
        return loaded
    with StepInMemory(megatron, args, checkpointer.ranks, found, place, checkpointer.goes_on)():
        return _pair(megatron.load_checkpoint(**values))


def _require_no_storage(storage: object) -> None:
    if storage is not None:
        raise ValueError(
            f"storage: a {type(storage).__name__} is code of its own; say which steps are kept by deletion_strategy="
            "KeepLatestStep or KeepStepInterval of troupe.checkpoint"
        )


def _keep(checkpointer: MegatronCheckpointer, capture: Capture, step: int, storage_type: StorageType) -> bool:
    try:
        files = Files(capture.files())
    except Exception as error:
        files = FailedFiles(error)
    return checkpointer.save_files(step, files, storage_type)


def _by_megatron_alone(megatron: Any, values: dict[str, Any], storage_type: StorageType) -> bool:
    which = "release" if values.get("release") else "non_persistent_ckpt"
    if storage_type is not StorageType.DISK:
        raise ValueError(f"{which}: Megatron writes such a checkpoint itself, to a disk; storage_type is {storage_type.name}")
    log.info("%s: Megatron writes this checkpoint itself, while training waits", which)
    megatron.save_checkpoint(**values)
    return True


def _loaded(megatron: Any, args: Any, values: dict[str, Any], place: Any) -> tuple[int, int]:
    reading = contextlib.nullcontext()
    if isinstance(place, (str, os.PathLike)) and "://" not in os.fspath(place):
        reading = StepOnDisk(megatron, args, os.path.abspath(os.fspath(place)), Rank.of_this_process())()
    with reading:
        return _pair(megatron.load_checkpoint(**values))


def _pair(result: Any) -> tuple[int, int]:
    return result if isinstance(result, tuple) else (result, 0)


def _options(
    args: Any, place: str, save_timeout: float, replica_count: int, strategy: DeletionStrategy | None
) -> Options:
    retain = getattr(args, "save_retain_interval", None)
    if strategy is None and retain:
        strategy = KeepStepInterval(retain, place)
    return Options(save_timeout, replica_count, strategy)
