"""What benches of frameworks share that are installed in an environment of their own."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import harness
from launchers import ROOT, free_port
from snapshot import THREADS

BYTES_OF_A_PARAMETER = 16  # with ZeRO stage 1: itself, its float32 partition, and two moments


def runs_with(module: str, python: Path, how: str) -> bool:
    """Whether this interpreter has the module. If not, the bench is begun anew by `python`, and without that it says `how` to get it."""
    if importlib.util.find_spec(module) is not None:
        return True
    if not python.exists() or Path(sys.executable) == python:
        harness.progress(f"{Path(sys.argv[0]).stem}: {module} is not installed: {how}")
        return False
    os.execv(python, [str(python), *sys.argv])


def be_alone() -> None:
    """This process becomes the only rank."""
    warnings.simplefilter("ignore")
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "DS_ACCELERATOR": "cpu"}
    os.environ |= alone | {"MASTER_PORT": str(free_port())}
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    sys.path.insert(0, str(ROOT / "python"))


def saved_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def deepspeed_engine(size: int, tensors: int, ranks: int = 1):
    """With ZeRO stage 1 and AdamW in float32, after its first step. `size`: bytes of the state, `tensors`: parameters."""
    import deepspeed
    import torch

    # DeepSpeed would compile it at its first start, which takes minutes.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    each = size // BYTES_OF_A_PARAMETER // tensors // ranks * ranks
    model = torch.nn.Module()
    for i in range(tensors):
        model.register_parameter(f"layer{i}", torch.nn.Parameter(torch.randn(each)))
    model.forward = lambda: sum(one.sum() for one in model.parameters())
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
        "zero_optimization": {"stage": 1},
        "steps_per_print": 10**9,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    engine.backward(engine())
    engine.step()
    return engine
