"""Transformers' Trainer with ZeRO, whose first life ends in the middle of its steps.

    trainer.py PLACE STAGE STEPS KILLED HOW

HOW: "flash", "own" (Trainer alone), "universal" (Trainer alone, from a universal checkpoint of step KILLED) or "memory" (all steps
are in memory alone, and last a while). Steps are saved at each fifth; KILLED: 0, or the step after which rank 1 kills itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))

import deepspeed
import torch
from tiny_trainer import trainer
from transformers import TrainerCallback

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # which would be compiled, for minutes


class Killed(TrainerCallback):
    def __init__(self, after: int):
        self.after = after

    def on_step_end(self, args, state, control, **_) -> None:
        if state.global_step == self.after and args.process_index == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Told(TrainerCallback):
    def on_step_end(self, args, state, control, **_) -> None:
        (Path(args.output_dir) / f"made-{state.global_step}").touch()
        time.sleep(0.2)


def digest(model: torch.nn.Module, stage: int) -> str:
    """Of whole parameters, which all ranks put together."""
    sums = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        with deepspeed.zero.GatheredParameters(parameter, enabled=stage == 3):
            sums.update(name.encode() + parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return sums.hexdigest()


def main(place: Path, stage: int, steps: int, killed: int, how: str) -> None:
    first_life = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
    config = {
        "train_micro_batch_size_per_gpu": "auto",
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": stage, "stage3_gather_16bit_weights_on_model_save": True},
    }
    callbacks, more = [Killed(killed if first_life and how == "flash" else 0)], {}
    if how == "memory":
        callbacks.append(Told())
        more["save_steps"] = 1000
    if how == "universal" and stage:
        config["checkpoint"] = {"load_universal": True}
    made = trainer(place, steps, deepspeed=config, callbacks=callbacks, **more)
    if how in ("flash", "memory"):
        from troupe.checkpoint.transformers import flash

        made = flash(made, memory_steps=int(how == "memory"))
    made.train(resume_from_checkpoint=str(place / f"checkpoint-{killed}") if how == "universal" else how != "own")
    whole = digest(made.model, stage)
    if made.args.process_index == 0:
        rows = [(row["step"], row["loss"]) for row in made.state.log_history if "loss" in row]
        (place / "end.json").write_text(json.dumps({"digest": whole, "losses": rows}))
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(text) for text in sys.argv[2:5]), sys.argv[5])
