"""A tiny GPT of Megatron's on CPUs, with Megatron's own data parallelism and optimizers over gloo.

What is put in the place of CUDA's functions: a generator's state, the current device, waiting for the device, tensors that are made
with device="cuda", and a tensor's type as text; and Megatron's fork of CUDA's generators, in which a dropout of 0 drops nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from typing import Any

import torch
import torch.nn.functional as F

HIDDEN, LAYERS, VOCABULARY, LENGTH = 16, 2, 32, 8


FACTORIES = ("tensor", "zeros", "ones", "empty", "full")


def without_cuda() -> None:
    """Once for a process."""
    if torch.cuda.current_device is _cpu:
        return
    for name in FACTORIES:
        setattr(torch, name, _on_cpu(getattr(torch, name)))
    # The distributed optimizer saves padding that it has never written, which would be another one in each save.
    empty = torch.empty
    torch.empty = lambda *size, **named: empty(*size, **named).zero_()
    kind = torch.Tensor.type

    def kind_on_cuda(tensor: torch.Tensor, *to: Any, **named: Any) -> Any:
        found = kind(tensor, *to, **named)
        return found.replace("torch.", "torch.cuda.", 1) if isinstance(found, str) else found

    torch.Tensor.type = kind_on_cuda
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    torch.cuda.get_rng_state = lambda *_: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda *_: None
    torch.cuda.current_device = _cpu
    torch.cuda.synchronize = lambda *_: None
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker

    CudaRNGStatesTracker.fork = lambda *_: contextlib.nullcontext()  # nothing is dropped out here
    from megatron.core import optimizer
    from megatron.core.optimizer import distrib_optimizer

    optimizer.Adam = distrib_optimizer.Adam = FusedAdam
    optimizer.USING_PYTORCH_OPTIMIZER = False
    distrib_optimizer.HAVE_APEX_OR_TE = distrib_optimizer.USING_APEX_OPTIMIZER = True


def _cpu() -> str:
    return "cpu"


def _on_cpu(factory: Any) -> Any:
    def made(*data: Any, device: Any = None, **named: Any) -> torch.Tensor:
        return factory(*data, device="cpu" if str(device) == "cuda" else device, **named)

    return made


def arguments(place: str, **more: Any) -> Any:
    """Megatron's own defaults, but for `more`."""
    from megatron.training import arguments as of_megatron
    from megatron.training import global_vars

    sys.argv = ["train"]
    args = of_megatron.parse_args(ignore_unknown_args=True)
    values = {
        "save": place,
        "load": place,
        "ckpt_format": "torch",
        "num_layers": LAYERS,
        "hidden_size": HIDDEN,
        "num_attention_heads": 2,
        "use_distributed_optimizer": False,
        "consumed_train_samples": 0,
        "consumed_valid_samples": 0,
        "skipped_train_samples": 0,
        "tensor_model_parallel_size": 1,
        "pipeline_model_parallel_size": 1,
        "vocab_file": None,
        "swiglu": False,
        "world_size": torch.distributed.get_world_size(),
        **more,
    }
    for name, value in values.items():
        setattr(args, name, value)
    args.use_dist_ckpt = args.ckpt_format != "torch"
    global_vars._GLOBAL_ARGS = args
    return args


def gpt_config(args: Any, half: bool) -> Any:
    """Megatron's TransformerConfig. `half`: in bfloat16."""
    from megatron.core.transformer.transformer_config import TransformerConfig

    return TransformerConfig(
        num_layers=args.num_layers,
        hidden_size=args.hidden_size,
        num_attention_heads=2,
        use_cpu_initialization=True,
        tensor_model_parallel_size=args.tensor_model_parallel_size,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        masked_softmax_fusion=False,
        bias_dropout_fusion=False,
        bias_activation_fusion=False,
        gradient_accumulation_fusion=False,
        bf16=half,
        params_dtype=torch.bfloat16 if half else torch.float32,
    )


def optimizer_config(half: bool, distributed: bool) -> Any:
    from megatron.core.optimizer import OptimizerConfig

    return OptimizerConfig(
        optimizer="adam",
        lr=1e-3,
        min_lr=1e-4,
        clip_grad=0.0,
        bf16=half,
        params_dtype=torch.bfloat16 if half else torch.float32,
        use_distributed_optimizer=distributed,
    )


class FusedAdam(torch.optim.Optimizer):
    """Apex's, as far as checkpoints see it: a group has the number of steps, and not each of its tensors. With PyTorch's own Adam
    Megatron 0.16.1 cannot load the distributed optimizer's state."""

    def __init__(self, params: Any, lr: float, weight_decay: float, betas: tuple[float, float], eps: float, **_: Any):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            one, two = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                state["exp_avg"].lerp_(parameter.grad, 1 - one)
                state["exp_avg_sq"].mul_(two).addcmul_(parameter.grad, parameter.grad, value=1 - two)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                root = (state["exp_avg_sq"] / (1 - two ** group["step"])).sqrt_().add_(group["eps"])
                parameter.addcdiv_(state["exp_avg"], root, value=-group["lr"] / (1 - one ** group["step"]))


class Training:
    """`tensor_parallel` of the ranks share a model; the others have the same one. `distributed`: each rank of those that have the
    same model has a part of the optimizer's state."""

    def __init__(
        self, place: str, tensor_parallel: int = 2, distributed: bool = False, hidden: int = HIDDEN, layers: int = LAYERS, **more: Any
    ):
        without_cuda()
        from megatron.core import num_microbatches_calculator, parallel_state
        from megatron.core.tensor_parallel import random as tensor_parallel_random

        if parallel_state.model_parallel_is_initialized():
            parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(tensor_parallel)
        self.replicas = torch.distributed.get_world_size() // tensor_parallel
        num_microbatches_calculator.destroy_num_microbatches_calculator()
        num_microbatches_calculator.init_num_microbatches_calculator(0, None, 2 * self.replicas, 2, self.replicas)
        self.args = arguments(
            place,
            tensor_model_parallel_size=tensor_parallel,
            use_distributed_optimizer=distributed,
            hidden_size=hidden,
            num_layers=layers,
            **more,
        )
        torch.manual_seed(7)
        tensor_parallel_random.get_cuda_rng_tracker().states_["model-parallel-rng"] = torch.get_rng_state()
        self.model = [self._model(distributed)]
        self.optimizer = self._optimizer(distributed)
        self.scheduler = self._scheduler()
        self.step = 0

    def _model(self, distributed: bool) -> torch.nn.Module:
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.models.gpt.gpt_model import GPTModel
        from megatron.core.transformer.module import Float16Module

        config = gpt_config(self.args, distributed)
        model: torch.nn.Module = GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, LENGTH)
        if distributed:
            model = Float16Module(config, model)
        how = DistributedDataParallelConfig(use_distributed_optimizer=distributed, grad_reduce_in_fp32=True)
        return DistributedDataParallel(config, how, model)

    def _optimizer(self, distributed: bool) -> Any:
        from megatron.core.optimizer import get_megatron_optimizer

        return get_megatron_optimizer(optimizer_config(distributed, distributed), self.model)

    def _scheduler(self) -> Any:
        from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

        return OptimizerParamScheduler(
            self.optimizer, 0.0, 1e-3, 1e-4, 2, 1000, "linear", 0.0, 0.0, 1000, "constant"
        )

    def train(self, until: int) -> float:
        from megatron.core import parallel_state, tensor_parallel
        from megatron.core.distributed import finalize_model_grads

        loss, rank = 0.0, parallel_state.get_data_parallel_rank()
        while self.step < until:
            self.step += 1
            seed = 1000 * self.step + rank
            tokens = torch.randint(VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(seed))
            mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)[None, None]
            self.model[0].zero_grad_buffer()
            self.optimizer.zero_grad()
            logits = self.model[0](tokens, torch.arange(LENGTH).expand(2, LENGTH), mask)
            whole = tensor_parallel.gather_from_tensor_model_parallel_region(logits)
            found = F.cross_entropy(whole.flatten(0, 1).float(), tokens.roll(-1, 1).flatten())
            found.backward()
            finalize_model_grads(self.model)
            self.optimizer.step()
            self.scheduler.step(1)
            loss = float(found)
            self.args.consumed_train_samples += 2 * self.replicas
        return loss

    @property
    def everything(self) -> tuple[Any, ...]:
        return self.model, self.optimizer, self.scheduler

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().clone() for name, value in self.model[0].named_parameters()}

    def moments(self) -> dict[str, torch.Tensor]:
        """Of the optimizer, as far as this rank has them."""
        found = {}
        for i, one in enumerate(getattr(self.optimizer, "chained_optimizers", [self.optimizer])):
            for j, state in enumerate(one.optimizer.state.values()):
                found |= {f"{i}.{j}.{key}": value.clone() for key, value in state.items() if torch.is_tensor(value)}
        return found

    def digest(self) -> str:
        """Of all that this rank has of model and optimizer."""
        sums = hashlib.sha256()
        for name, value in (self.weights() | self.moments()).items():
            sums.update(name.encode() + value.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        sums.update(repr((self.step, self.scheduler.state_dict(), self.args.consumed_train_samples)).encode())
        return sums.hexdigest()


def end_writer() -> None:
    """Of Megatron's own saves: they leave a process that would outlive one that is killed."""
    import gc

    from megatron.core.dist_checkpointing.strategies import filesystem_async

    filesystem_async._results_queue = None
    gc.collect()
