#!/usr/bin/env python3
"""Megatron-LM with tensor parallelism that goes on where it was after a worker, a node or the whole job was lost.

    actor-launcher --nproc-per-node 2 --max-restarts 3 megatron_gpt.py CHECKPOINTS [STEPS]

In a training script of your own two names change where they come from: save_checkpoint and load_checkpoint. See docs/megatron.md.
"""

from __future__ import annotations

import os
import sys

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.training.arguments import parse_args
from megatron.training.global_vars import set_args

# Instead of: from megatron.training.checkpointing import load_checkpoint, save_checkpoint
from troupe.checkpoint.megatron import StorageType, load_checkpoint, save_checkpoint, wait_latest_checkpoint

VOCABULARY, LENGTH = 64, 16


def batch(step: int, rank: int) -> torch.Tensor:
    """This rank's part of a step's data; a loader that can begin at any step does the same."""
    return torch.randint(VOCABULARY, (4, LENGTH), generator=torch.Generator().manual_seed(1000 * step + rank))


def prepare(checkpoints: str) -> torch.device:
    """What `megatron.training.initialize_megatron` does with a command line of hundreds of options."""
    on_gpus = torch.cuda.is_available()
    torch.distributed.init_process_group("nccl" if on_gpus else "gloo")
    if on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world = torch.distributed.get_world_size()
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=world)
    init_num_microbatches_calculator(0, None, 4, 4, 1)
    tensor_parallel.model_parallel_cuda_manual_seed(7)
    torch.manual_seed(7)
    command, sys.argv = sys.argv, sys.argv[:1]
    args = parse_args(ignore_unknown_args=True)
    sys.argv = command
    for name, value in {
        "save": checkpoints,
        "load": checkpoints,
        "ckpt_format": "torch_dist",
        "use_dist_ckpt": True,
        "use_distributed_optimizer": False,
        "tensor_model_parallel_size": world,
        "pipeline_model_parallel_size": 1,
        "num_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 2 * world,
        "world_size": world,
        "consumed_train_samples": 0,
        "skipped_train_samples": 0,
        "consumed_valid_samples": 0,
    }.items():
        setattr(args, name, value)
    set_args(args)
    return torch.device(torch.cuda.current_device())


def made() -> tuple[list[torch.nn.Module], object, object]:
    world = torch.distributed.get_world_size()
    config = TransformerConfig(
        num_layers=2, hidden_size=32, num_attention_heads=2 * world, tensor_model_parallel_size=world,
        use_cpu_initialization=True, hidden_dropout=0.0, attention_dropout=0.0, masked_softmax_fusion=False,
        bias_dropout_fusion=False, gradient_accumulation_fusion=False,
    )  # fmt: skip
    model = GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, LENGTH, parallel_output=False)
    model = [DistributedDataParallel(config, DistributedDataParallelConfig(), model.to(torch.cuda.current_device()))]
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-3, min_lr=1e-4, clip_grad=0.0), model)
    scheduler = OptimizerParamScheduler(optimizer, 0.0, 1e-3, 1e-4, 2, 1000, "linear", 0.0, 0.0, 1000, "constant")
    return model, optimizer, scheduler


def main(checkpoints: str, steps: int) -> None:
    device = prepare(checkpoints)
    model, optimizer, scheduler = made()
    first = load_checkpoint(model, optimizer, scheduler)[0] + 1
    rank = torch.distributed.get_rank()
    if rank == 0:
        print(f"begins with step {first}", flush=True)
    mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=device), 1)[None, None]
    places = torch.arange(LENGTH, device=device).expand(4, LENGTH)
    for step in range(first, steps + 1):
        tokens = batch(step, parallel_state.get_data_parallel_rank()).to(device)
        model[0].zero_grad_buffer()
        optimizer.zero_grad()
        logits = model[0](tokens, places, mask)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.roll(-1, 1).flatten())
        loss.backward()
        finalize_model_grads(model)
        optimizer.step()
        scheduler.step(1)
        # Memory each step, which costs a copy; the disk each 50th, behind training.
        where = StorageType.DISK if step % 50 == 0 else StorageType.MEMORY
        save_checkpoint(step, model, optimizer, scheduler, 0, storage_type=where)
    wait_latest_checkpoint()
    if rank == 0:
        made = f"ends after step {steps} with loss {loss.item():.9f}" if first <= steps else f"step {first - 1} is made already"
        print(made, flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
