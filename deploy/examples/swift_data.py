#!/usr/bin/env python3
"""A model and data with which ms-swift can be tried on any machine, without a download.

    swift_data.py DIRECTORY

DIRECTORY/model is a Qwen2 of 38,000 random weights with a tokenizer of single bytes, DIRECTORY/data.jsonl has 256 dialogues.
docs/ms-swift.md has the command that trains with them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TEMPLATE = "{% for m in messages %}<|im_start|>{{m.role}}\n{{m.content}}<|im_end|>\n{% endfor %}"


def tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    made.chat_template = TEMPLATE
    return made


def main(directory: Path) -> None:
    torch.manual_seed(0)
    words = tokenizer()
    words.save_pretrained(directory / "model")
    config = Qwen2Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(directory / "model")
    with open(directory / "data.jsonl", "w") as file:
        for i in range(256):
            said = [("user", f"what is {i}"), ("assistant", f"it is {i}")]
            messages = [{"role": role, "content": content} for role, content in said]
            print(json.dumps({"messages": messages}), file=file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
