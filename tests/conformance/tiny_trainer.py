"""A Trainer of Transformers that is as small as one can be, random and with dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

WORDS = 100


class Texts(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = torch.randint(0, WORDS, (8,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "labels": words}


def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    size = {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 16}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=WORDS, bos_token_id=1, eos_token_id=2, loss_type="ForCausalLM", **size)
    )


def trainer(place: Path, steps: int, kind: type[Trainer] = Trainer, **more: Any) -> Trainer:
    arguments = {
        "max_steps": steps,
        "per_device_train_batch_size": 2,
        "logging_steps": 1,
        "save_steps": 5,
        "learning_rate": 1e-3,
        "use_cpu": True,
        "ddp_find_unused_parameters": False,
        "report_to": [],
        "disable_tqdm": True,
    }
    callbacks = more.pop("callbacks", [])
    made = kind(
        model(),
        TrainingArguments(str(place), **(arguments | more)),
        train_dataset=Texts(),
        eval_dataset=Texts(),
        callbacks=callbacks,
    )
    made.remove_callback(transformers.PrinterCallback)
    return made


def weights(of: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in of.model.state_dict().items()}


def losses(of: Trainer) -> list[tuple[int, float, float]]:
    rows = [row for row in of.state.log_history if "loss" in row]
    return [(row["step"], row["loss"], row["grad_norm"]) for row in rows]
