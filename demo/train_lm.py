#!/usr/bin/env python3
"""Trains a small byte-level language model with DistributedDataParallel over gloo.

The text is the licences that every Debian system carries. The script knows nothing about its
launcher: it reads the usual environment (RANK, WORLD_SIZE, MASTER_ADDR, ...), saves its state every
few steps and, when it is started again, goes on from the newest checkpoint. Surviving a failure
needs nothing else.

A run that was interrupted ends with the same bits as one that was not, because nothing depends on
how often the script was started: the global batch of a step is a function of the seed and the step,
each rank takes its part of it, and the model has no other randomness. So there is no random state
to save.

The checkpoint directory must be one that all nodes share. For monitoring from outside it also
gets `progress.jsonl` (written by rank 0: a line each when it has started, has imported torch and is
ready to train, one per step, one at the end) and `worker-<rank>.pid`.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

RANK = int(os.environ.get("RANK", 0))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint-dir", type=Path, required=True)
    parser.add_argument("--text-dir", type=Path, default=Path("/usr/share/common-licenses"))
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--checkpoint-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--report-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--batch", type=int, default=32, help="sequences per step, over all ranks")
    parser.add_argument("--context", type=int, default=96, help="bytes per sequence")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Progress:
    """Tells those outside how far rank 0 is; says nothing on other ranks."""

    def __init__(self, directory: Path):
        self.file = open(directory / "progress.jsonl", "a", buffering=1) if RANK == 0 else None

    def record(self, event: str, step: int = 0) -> None:
        if self.file:
            line = {"event": event, "step": step, "time": time.time(), "pid": os.getpid()}
            self.file.write(json.dumps(line) + "\n")

    def say(self, text: str) -> None:
        if self.file:
            print(text, flush=True)


if __name__ == "__main__":
    # Before the import of torch, which takes seconds: the process is visible at once.
    options = parse_options()
    options.checkpoint_dir.mkdir(parents=True, exist_ok=True)
    (options.checkpoint_dir / f"worker-{RANK}.pid").write_text(f"{os.getpid()}\n")
    progress = Progress(options.checkpoint_dir)
    progress.record("started")

import torch
import torch._dynamo  # every optimizer imports it when it is made: here it counts as the import it is
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    """One pre-norm transformer layer with causal attention."""

    def __init__(self, width: int, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    """Predicts the next byte. Input and output share one table of byte vectors."""

    def __init__(self, width: int, layers: int, context: int):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.bytes.weight, std=width**-0.5)
        nn.init.normal_(self.positions.weight, std=0.1 * width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.bytes(tokens) + self.positions.weight[: tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.bytes.weight)


class Text:
    """The licences as one row of bytes; the last tenth is held out for evaluation."""

    def __init__(self, directory: Path, context: int):
        files = sorted(f for f in directory.iterdir() if f.is_file() and not f.is_symlink())
        text = bytearray(b"\n".join(f.read_bytes() for f in files))
        data = torch.frombuffer(text, dtype=torch.uint8)
        self.context = context
        self.train, self.held_out = data.tensor_split([len(data) * 9 // 10])

    def batch(self, seed: int, step: int, size: int) -> Tensor:
        """The global batch of one step: the same on every rank, whatever the number of ranks."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(len(self.train) - self.context, (size,), generator=generator)
        return self.windows(self.train, starts)

    def evaluation(self, count: int) -> Tensor:
        starts = torch.linspace(0, len(self.held_out) - self.context - 1, count).long()
        return self.windows(self.held_out, starts)

    def windows(self, data: Tensor, starts: Tensor) -> Tensor:
        return data[starts[:, None] + torch.arange(self.context + 1)].long()


def next_byte_loss(model: nn.Module, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def mean_over_ranks(value: Tensor) -> float:
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()


@torch.no_grad()
def held_out_loss(model: nn.Module, text: Text) -> float:
    windows = text.evaluation(16 * dist.get_world_size())
    return mean_over_ranks(next_byte_loss(model, windows[RANK :: dist.get_world_size()]))


def save(path: Path, state: dict) -> None:
    """Replaces the checkpoint as a whole: a crash leaves the old one or the new one."""
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def train(options: argparse.Namespace, progress: Progress) -> None:
    world = dist.get_world_size()
    if options.batch % world:
        raise SystemExit(f"--batch {options.batch} cannot be shared by {world} ranks")
    text = Text(options.text_dir, options.context)

    torch.manual_seed(options.seed)
    model = LanguageModel(options.width, options.layers, options.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate, betas=(0.9, 0.95))
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    done = 0
    checkpoint = options.checkpoint_dir / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        warm_up.load_state_dict(state["schedule"])
        done = state["step"]
    ddp = DistributedDataParallel(model)
    # A rehearsal whose gradients are dropped. DDP arranges its buckets anew after the first
    # backward pass, and the order in which gloo adds up the ranks depends on the place in a bucket:
    # without this, the first step after a restart would differ in its last bits from the same step
    # of a run that was not interrupted.
    next_byte_loss(ddp, text.batch(options.seed, 0, options.batch)[RANK::world]).backward()

    parameters = sum(p.numel() for p in model.parameters())
    fresh = f"{parameters:,} parameters, {len(text.train):,} bytes of text"
    progress.say(f"{world} ranks, " + (f"resuming after step {done}" if done else fresh))
    progress.record("ready", done)
    began, tokens = time.monotonic(), 0
    for step in range(done + 1, options.steps + 1):
        windows = text.batch(options.seed, step, options.batch)
        loss = next_byte_loss(ddp, windows[RANK::world])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm_up.step()
        tokens += options.batch * options.context

        if step % options.report_every == 0:
            mean = mean_over_ranks(loss.detach())
            rate = tokens / (time.monotonic() - began)
            progress.say(f"step {step:4d}   loss {mean:.3f}   {rate:,.0f} tokens/s")
        if RANK == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(checkpoint, state | {"schedule": warm_up.state_dict(), "step": step})
        progress.record("step", step)

    final = held_out_loss(model, text)
    if not math.isfinite(final):
        raise SystemExit(f"the loss on held-out text is {final}")
    progress.record("finished", options.steps)
    progress.say(f"final loss {final:.3f} after {options.steps} steps")


if __name__ == "__main__":
    progress.record("imported")
    dist.init_process_group("gloo")
    try:
        train(options, progress)
    finally:
        dist.destroy_process_group()
    # Not by way of the interpreter's own end: there a thread of gloo may still let go of the last
    # work's tensors, and a process that had finished aborts (pytorch/pytorch#117762, #179291).
    sys.stdout.flush()
    os._exit(0)
