"""Checkpoints of fully sharded training, FSDP1 and FSDP2, with the names and arguments of DLRover's flash checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._nested_dict import unflatten_state_dict
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

from .dcp import DcpCheckpointer
from .ddp import DdpCheckpointer
from .retention import StorageType

State = dict[str, Any]
Model = torch.nn.Module
Optimizer = torch.optim.Optimizer

MODEL, OPTIMIZER, OPTIMIZER_OF_FULL = "model", "optim", "optimizer"  # keys of a state, as DLRover has them


class FsdpShardCheckpointer(DcpCheckpointer):
    """Each rank saves its own part: `<checkpoint_dir>/<step>/__<rank>_0.distcp`, which PyTorch's FileSystemReader reads.

    A job may go on with another number of ranks, or another sharding.
    """

    def save_checkpoint(  # type: ignore[override]
        self,
        step: int,
        model: Model | State,
        optimizer: Optimizer | str | os.PathLike = "",
        extra_sd: State | StorageType | None = None,
        path: str | os.PathLike = "",
        storage_type: StorageType = StorageType.DISK,
    ) -> bool:
        """`(step, model, optimizer, extra_sd, path)`, or a state that the program has made: `(step, state, path)`.

        Of a model that is {"model": …, "optim": …, **extra_sd}. `path`: `<checkpoint_dir>/<directory>` instead of
        `<checkpoint_dir>/<step>`. Collective. Returns and raises as `DcpCheckpointer.save`.
        """
        state, path, storage_type = _given(model, optimizer, extra_sd, path, storage_type, _sharded)
        return self.save(step, state, os.fspath(path), storage_type)

    def load_checkpoint(  # type: ignore[override]
        self, model: Model, optimizer: Optimizer, resume_path: str | os.PathLike = ""
    ) -> State:
        """Puts the newest step into model and optimizer. Returns what else was saved with them; {} if there is no step.

        `resume_path`: see `get_storage_reader`. Collective. Raises CheckpointError, or CheckpointException of
        torch.distributed.checkpoint, for what cannot be read.
        """
        reader = self.get_storage_reader(resume_path)
        if reader is None:
            return {}
        extra = _others(reader.read_metadata())
        if isinstance(model, FSDP):
            with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
                state = {MODEL: model.state_dict(), **extra}
                dcp.load(state, storage_reader=reader)
                model.load_state_dict(state[MODEL])
                found = load_sharded_optimizer_state_dict(
                    model_state_dict=state[MODEL], optimizer_key=OPTIMIZER, storage_reader=reader
                )
                optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, found[OPTIMIZER]))
        else:
            of_model, of_optimizer = get_state_dict(model, optimizer)
            state = {MODEL: of_model, OPTIMIZER: of_optimizer, **extra}
            dcp.load(state, storage_reader=reader)
            set_state_dict(
                model, optimizer, model_state_dict=state[MODEL], optim_state_dict=state[OPTIMIZER]
            )
        return {key: state[key] for key in extra}


class FsdpFullCheckpointer(DdpCheckpointer):
    """The whole state in one file of torch.save, `<checkpoint_dir>/<step>/rank_0.pt`. It is put together at each rank, which takes
    memory for all of it there."""

    def save_checkpoint(  # type: ignore[override]
        self,
        step: int,
        model: Model | State,
        optimizer: Optimizer | str | os.PathLike = "",
        extra_sd: State | StorageType | None = None,
        path: str | os.PathLike = "",
        storage_type: StorageType = StorageType.DISK,
    ) -> bool:
        """As FsdpShardCheckpointer's. Of a model the state is {"model": …, "optimizer": …, **extra_sd}; `path` names a file."""
        state, path, storage_type = _given(model, optimizer, extra_sd, path, storage_type, _full)
        return super().save_checkpoint(step, state, os.fspath(path), storage_type)

    def load_checkpoint(  # type: ignore[override]
        self, model: Model, optimizer: Optimizer, resume_path: str | os.PathLike = ""
    ) -> State:
        """As FsdpShardCheckpointer's."""
        state = super().load_checkpoint(os.fspath(resume_path))
        if not state:
            return {}
        of_model, of_optimizer = state.pop(MODEL), state.pop(OPTIMIZER_OF_FULL)
        if isinstance(model, FSDP):
            with _full_of_fsdp1(model):
                model.load_state_dict(of_model)
                optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, of_optimizer))
        else:
            set_state_dict(
                model,
                optimizer,
                model_state_dict=of_model,
                optim_state_dict=of_optimizer,
                options=StateDictOptions(full_state_dict=True),
            )
        return state


def _given(
    model: Model | State,
    optimizer: Optimizer | str | os.PathLike,
    extra_sd: State | StorageType | None,
    path: str | os.PathLike,
    storage_type: StorageType,
    state_of: Any,
) -> tuple[State, str | os.PathLike, StorageType]:
    """State, path and storage of both forms of a call. Raises TypeError for what is neither."""
    if isinstance(extra_sd, StorageType):  # (step, state, path, storage_type)
        extra_sd, storage_type = None, extra_sd
    if isinstance(model, Mapping):
        if not isinstance(optimizer, (str, os.PathLike)):
            raise TypeError("save_checkpoint(step, state, path): a state that is made has its optimizer in it")
        return {**model, **(extra_sd or {})}, optimizer or path, storage_type
    if not isinstance(model, torch.nn.Module) or not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            "save_checkpoint takes (step, model, optimizer, extra_sd, path) or (step, state, path); here are a "
            f"{type(model).__name__} and a {type(optimizer).__name__}"
        )
    return {**state_of(model, optimizer), **(extra_sd or {})}, path, storage_type


def _sharded(model: Model, optimizer: Optimizer) -> State:
    if not isinstance(model, FSDP):
        of_model, of_optimizer = get_state_dict(model, optimizer)
        return {MODEL: of_model, OPTIMIZER: of_optimizer}
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        return {MODEL: model.state_dict(), OPTIMIZER: FSDP.optim_state_dict(model, optimizer)}


def _full(model: Model, optimizer: Optimizer) -> State:
    if not isinstance(model, FSDP):
        options = StateDictOptions(full_state_dict=True)
        of_model, of_optimizer = get_state_dict(model, optimizer, options=options)
        return {MODEL: of_model, OPTIMIZER_OF_FULL: of_optimizer}
    with _full_of_fsdp1(model):
        return {MODEL: model.state_dict(), OPTIMIZER_OF_FULL: FSDP.optim_state_dict(model, optimizer)}


def _full_of_fsdp1(model: Model) -> Any:
    # PyTorch (2.13) offloads what it has gathered without a copy where that is in main memory already, and gathers the next
    # state of the parameter into the same memory: exp_avg has the numbers of exp_avg_sq then.
    offload = any(parameter.device.type != "cpu" for parameter in model.parameters())
    return FSDP.state_dict_type(
        model,
        StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(rank0_only=False),
        FullOptimStateDictConfig(offload_to_cpu=offload, rank0_only=False),
    )


def _others(metadata: Metadata) -> State:
    """Places for what a step has beside model and optimizer."""
    paths = {
        name: path
        for name, path in metadata.planner_data.items()
        if path[0] not in (MODEL, OPTIMIZER) and name in metadata.state_dict_metadata
    }
    places: State = {}
    for name in paths:
        about = metadata.state_dict_metadata[name]
        is_tensor = isinstance(about, TensorStorageMetadata)
        places[name] = torch.empty(about.size, dtype=about.properties.dtype) if is_tensor else None
    return unflatten_state_dict(places, paths)
