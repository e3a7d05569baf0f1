"""The tiny GPT with PyTorch's FSDP2, as Megatron has it with --use-torch-fsdp2: what its format torch_dcp is for.

Beside what tiny_gpt.py puts in the place of CUDA's: a mesh of devices of the CPU.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from tiny_gpt import LENGTH, VOCABULARY, Training, gpt_config, optimizer_config
from torch.distributed import DeviceMesh


class ShardedTraining(Training):
    """`chained`: the optimizer as Megatron 0.16.1 makes it, which it cannot load in torch_dcp; else the one inside of that, which it can."""

    def __init__(self, place: str, chained: bool = False, **more: Any):
        self._chained = chained
        super().__init__(place, 1, False, ckpt_format="torch_dcp", use_torch_fsdp2=True, bf16=True, **more)

    def _model(self, distributed: bool) -> torch.nn.Module:
        from megatron.core.distributed import DistributedDataParallelConfig, torch_fully_sharded_data_parallel
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.models.gpt.gpt_model import GPTModel
        from megatron.core.transformer.module import Float16Module

        config = gpt_config(self.args, True)
        config.transformer_impl = "local"  # else layers inside of layers are sharded once more
        spec = get_gpt_layer_local_spec()
        model = Float16Module(config, GPTModel(config, spec, VOCABULARY, LENGTH, share_embeddings_and_output_weights=False))

        def on_cpu(group: Any, _: str) -> DeviceMesh:
            return DeviceMesh.from_group(group, "cpu")

        with mock.patch.object(torch_fully_sharded_data_parallel, "DeviceMesh", mock.Mock(from_group=on_cpu)):
            sharded = torch_fully_sharded_data_parallel.TorchFullyShardedDataParallel(config, DistributedDataParallelConfig(), model)
        sharded.finish_grad_sync = lambda **_: None  # 0.16.1 calls it with an argument that FSDP2's does not take
        return sharded

    def _optimizer(self, distributed: bool) -> Any:
        from megatron.core.optimizer import get_megatron_optimizer

        made = get_megatron_optimizer(optimizer_config(True, distributed), self.model)
        return made if self._chained else made.chained_optimizers[0]

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: value.to_local() for name, value in super().weights().items()}

    def moments(self) -> dict[str, torch.Tensor]:
        return {name: value.to_local() for name, value in super().moments().items()}
