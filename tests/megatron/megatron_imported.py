"""What a rank imports of Megatron, for a process whose forks are ranks."""

from __future__ import annotations

import megatron.core.dist_checkpointing
import megatron.core.models.gpt.gpt_layer_specs
import megatron.core.optimizer
import megatron.training.arguments
import megatron.training.checkpointing  # noqa: F401
