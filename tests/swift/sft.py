"""`swift sft`: its arguments, and what runs leave behind."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors.torch import load_file

SCRIPT = importlib.util.find_spec("swift.cli.sft").origin
HERE = Path(__file__).parent

FIXED = {
    "model_type": "qwen2",
    "template": "qwen",
    "torch_dtype": "float32",
    "attn_impl": "eager",
    "use_cpu": "true",
    "eval_strategy": "no",
    "split_dataset_ratio": 0,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "logging_steps": 1,
    "dataset_num_proc": 1,
    "dataloader_num_workers": 0,
    "report_to": "none",
    "use_hf": "true",
    "check_model": "false",
    "learning_rate": 1e-3,
}


def arguments(data: Path, output: Path, steps: int, save_steps: int, **more: Any) -> list[str]:
    """Of one `swift sft`, as it is typed."""
    given = FIXED | {"model": data / "model", "dataset": data / "data.jsonl", "output_dir": output}
    given |= {"max_steps": steps, "save_steps": save_steps, "use_flash_ckpt": "true", "tuner_type": "full"} | more
    return [word for name, value in given.items() for word in (f"--{name}", str(value))]


def version(run: Path) -> int:
    return int(run.name[1:].split("-")[0])


def runs(output: Path) -> list[Path]:
    """The directories of starts, the first one first."""
    return sorted(output.glob("v*-*"), key=version)


def tracked(run: Path) -> int | None:
    path = run / "dlrover_latest.txt"
    return int(path.read_text()) if path.exists() else None


def names(directory: Path) -> set[str]:
    """Of files, but for Troupe's own."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file() and not path.name.startswith("troupe-")}


def weights(directory: Path) -> dict[str, torch.Tensor]:
    for name in ("model.safetensors", "adapter_model.safetensors"):
        if (directory / name).exists():
            return load_file(directory / name)
    return torch.load(directory / "adapter_model.bin")


def curve(directory: Path) -> list[tuple]:
    """What was logged of each step: loss, gradient, learning rate."""
    history = json.loads((directory / "trainer_state.json").read_text())["log_history"]
    return [(row["step"], row["loss"], row["grad_norm"], row["learning_rate"]) for row in history if "loss" in row]


def same(one: object, other: object, where: str = "") -> None:
    """Tensor for tensor, bit for bit. The order of keys is that in which DeepSpeed lists a directory when it loads a universal checkpoint."""
    assert type(one) is type(other), where
    if isinstance(one, numpy.ndarray):
        one, other = one.tolist(), other.tolist()
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype and torch.equal(one, other), where
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, (x, y) in enumerate(zip(one, other, strict=True)):
            same(x, y, f"{where}/{i}")
    elif type(one).__module__.startswith("deepspeed.") and hasattr(one, "__dict__"):
        same(vars(one), vars(other), where)
    else:
        assert one == other or repr(one) == repr(other), where


def require_same_end(one: Path, other: Path) -> None:
    """Of two checkpoints: weights, optimizer, learning rate, random numbers and what was logged on the way."""
    same(weights(one), weights(other), "weights")
    for name in sorted(names(one)):
        if name.endswith((".pt", ".pth")):
            same(*(torch.load(each / name, weights_only=False) for each in (one, other)), name)
    assert curve(one) == curve(other)


def resumed(text: str) -> list[tuple[int, int]]:
    """Of each start that did not begin anew: the version of the run, and the step, that it went on from."""
    return [(int(v), int(step)) for v, step in re.findall(r"training goes on from \S*/v(\d+)-[^/\s]*/checkpoint-(\d+)", text)]
