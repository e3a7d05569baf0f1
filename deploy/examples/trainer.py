#!/usr/bin/env python3
"""Hugging Face's Trainer that goes on from its newest checkpoint after a worker, a node or the whole job was lost.

    actor-launcher --nproc-per-node 2 --max-restarts 3 trainer.py CHECKPOINTS [STEPS]

Checkpoints are the Trainer's own. What the script adds says which of them are whole: a worker that was killed may have left
one that is not.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import torch
from accelerate import PartialState
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

WHOLE = "whole"  # an empty file in each checkpoint that has all its files


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

    def on_save(self, args, state, control, **_: object) -> None:
        PartialState().wait_for_everyone()  # each rank has written its files
        if state.is_world_process_zero:
            Path(args.output_dir, f"checkpoint-{state.global_step}", WHOLE).touch()


def newest_whole(checkpoints: str) -> str | None:
    """Its folder; None in a new job."""
    found = [mark.parent for mark in Path(checkpoints).glob(f"checkpoint-*/{WHOLE}")]
    newest = max(found, key=lambda folder: int(folder.name.split("-")[1]), default=None)
    return newest and str(newest)


def main(checkpoints: str, steps: int) -> None:
    newest = newest_whole(checkpoints)
    if newest and int(newest.rpartition("-")[2]) >= steps:  # Trainer would make one more
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
        save_total_limit=2,  # the newest may not be whole
        logging_steps=10,
        report_to="none",
        disable_tqdm=True,
        use_cpu=not on_gpu,
        ddp_backend="nccl" if on_gpu else "gloo",
        ddp_find_unused_parameters=False,
    )
    model = LlamaForCausalLM(config)
    trainer = Trainer(model, arguments, train_dataset=Texts(), callbacks=[Progress()])
    trainer.train(resume_from_checkpoint=newest)
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
