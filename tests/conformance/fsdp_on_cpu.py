"""FSDP of Accelerate, and so of Transformers' Trainer, on CPUs.

Accelerate knows FSDP on devices alone: with the backend of CPUs it leaves `fsdp` aside without a word, and trains by DDP. That
decision is replaced here. What then shards, saves and loads is Accelerate's and PyTorch's own code.
"""

from __future__ import annotations

from typing import Any

import torch
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType


def allow() -> None:
    """For all accelerators of this process that are made with a plugin for FSDP."""
    native = AcceleratorState.__init__

    def begin(self: Any, *more: Any, fsdp_plugin: Any = None, **named: Any) -> None:
        native(self, *more, fsdp_plugin=fsdp_plugin, **named)
        plugin = fsdp_plugin or vars(self).get("fsdp_plugin")
        if plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, plugin
            self.device = torch.device("cpu")  # FSDP1 compares it with the parameters'

    AcceleratorState.__init__ = begin


def sharded(version: int, kind: str) -> dict[str, Any]:
    """Arguments of a Trainer of `tiny_trainer`."""
    how = {
        "version": version,
        "state_dict_type": kind,
        "sync_module_states": "false",  # which asks for a device
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "transformer_layer_cls_to_wrap": ["GPT2Block"],
    }
    return {"fsdp": True, "fsdp_config": how}
