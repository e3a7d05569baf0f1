#!/usr/bin/env python3
"""Hugging Face's Trainer with checkpoints in memory: a worker that was killed costs no step.

    actor-launcher --nproc-per-node 2 --max-restarts 3 trainer_in_memory.py CHECKPOINTS [STEPS]

The line with `flash` is all that is new. Each step is in memory, each 50th on the disk as Trainer writes it.
"""

from __future__ import annotations

import gc
import sys

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from troupe.checkpoint import complete_steps
from troupe.checkpoint.transformers import flash


class Texts(torch.utils.data.Dataset):
    """In place of tokenized texts: each counts upwards from another number."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = (index + torch.arange(16)) % 64
        return {"input_ids": words, "labels": words}


class Progress(TrainerCallback):
    def on_train_begin(self, args, state, control, **_: object) -> None:
        if state.is_world_process_zero:
            print(f"begins with step {state.global_step + 1}", flush=True)


def main(checkpoints: str, steps: int) -> None:
    if max(complete_steps(checkpoints), default=0) >= steps:  # Trainer would make one more
        print(f"step {steps} is made already", flush=True)
        return
    on_gpu = torch.cuda.is_available()
    set_seed(0)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=64, num_attention_heads=2, attention_dropout=0.1, **small)
    arguments = TrainingArguments(
        checkpoints,
        max_steps=steps,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        save_steps=50,
        save_total_limit=2,
        logging_steps=10,
        report_to="none",
        disable_tqdm=True,
        use_cpu=not on_gpu,
        ddp_backend="nccl" if on_gpu else "gloo",
        ddp_find_unused_parameters=False,
    )
    model = LlamaForCausalLM(config)
    trainer = Trainer(model, arguments, train_dataset=Texts(), callbacks=[Progress()])
    trainer = flash(trainer, memory_steps=1)
    trainer.train(resume_from_checkpoint=True)
    if trainer.is_world_process_zero():
        loss = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry][-1]
        print(f"ends after step {trainer.state.global_step} with loss {loss:.9f}", flush=True)
    # The process group's threads must end before the interpreter does, or they may abort the process; and the wrapped model
    # before them: the last owner of a group that is freed with the model waits for threads that wait for Python's lock.
    accelerator = trainer.accelerator
    del trainer, model
    accelerator.free_memory()
    gc.collect()
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
