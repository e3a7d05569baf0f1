"""A small model that DeepSpeed trains, and whose processes kill themselves at random moments.

    training.py PLACE STAGE STEPS KILLS HOW

HOW: "checkpointer" (DeepSpeedCheckpointer), "config" (nothing of Troupe's but a key in DeepSpeed's config). Every rank's part of a
step is a function of rank and step, so that an undisturbed run ends with the same bits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import deepspeed
import torch

# DeepSpeed would compile it at its first start, which takes minutes; it speeds collectives of CPUs up.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

FEATURES, BATCH = 96, 4


class Model(torch.nn.Module):
    """With a buffer that each forward pass changes, the same at all ranks: DeepSpeed saves rank 0's for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(FEATURES, 256), torch.nn.Linear(256, FEATURES)
        self.register_buffer("seen", torch.zeros(FEATURES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.mul_(0.99).add_(1.0)
        return self.second(torch.tanh(self.first(x)))


def config_of(stage: int, how: str) -> dict:
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 50}},
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
        "steps_per_print": 10**9,
    }
    if how == "config":
        config["checkpoint"] = {"troupe": {"disk_interval": 10, "keep_latest": 2}}
    return config


def engine_of(stage: int, how: str) -> deepspeed.DeepSpeedEngine:
    torch.manual_seed(0)
    model = Model()
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config_of(stage, how))[0]


def train(engine: deepspeed.DeepSpeedEngine, step: int) -> None:
    seed = 1000 * step + engine.global_rank
    x = torch.randn(BATCH, FEATURES, generator=torch.Generator().manual_seed(seed))
    engine.backward(((engine(x) - x.roll(1, 1)) ** 2).mean())
    engine.step()


def digest(engine: deepspeed.DeepSpeedEngine) -> str:
    """Of all that this rank holds of model and optimizer."""
    sums = hashlib.sha256()

    def add(what: object) -> None:
        if isinstance(what, torch.Tensor):
            sums.update(what.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if what.dim() else str(what).encode())
        elif isinstance(what, dict):
            for key in sorted(what, key=str):
                sums.update(str(key).encode())
                add(what[key])
        elif isinstance(what, (list, tuple)):
            for one in what:
                add(one)
        else:
            sums.update(repr(what).encode())

    add({name: value for name, value in engine.module_state_dict().items()})
    state = engine.optimizer.state_dict()
    add({name: value for name, value in state.items() if name not in ("loss_scaler", "ds_version")})
    add([float(each) for each in engine.get_lr()])
    return sums.hexdigest()


def killed_some_time(limit: float) -> None:
    def end() -> None:
        time.sleep(random.uniform(0, limit))
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end, daemon=True).start()


def write(path: Path, what: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(what))
    part.rename(path)


def main(place: Path, stage: int, steps: int, kills: int, how: str) -> None:
    told: list[str] = []
    logger = logging.getLogger("troupe.checkpoint")
    logger.setLevel(logging.INFO)
    logger.addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
    life, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
    engine, ckpt = engine_of(stage, how), str(place / "checkpoints")
    checkpointer = None
    if how == "checkpointer":
        from troupe.checkpoint import KeepLatestStep, StorageType
        from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

        checkpointer = DeepSpeedCheckpointer(engine, ckpt, deletion_strategy=KeepLatestStep(2, ckpt))
    path, state = (checkpointer or engine).load_checkpoint(ckpt)
    step = state["step"] if path else 0
    assert engine.global_steps == step
    write(place / f"{life}-{rank}.json", {"resumed": step, "path": path, "told": told, "at": time.time()})
    dies = life < kills and rank == random.Random(life).randrange(2)
    begun, last_to_die = step, life == kills - 1  # it leaves a step to go on from, however slow the machine is
    if dies and not last_to_die:
        killed_some_time(0.8)
    while step < steps:
        step += 1
        train(engine, step)
        until, kept = time.monotonic() + 50, False
        while not kept:  # as soon as there is an image for it: the disk may be slow
            if checkpointer:
                where = StorageType.DISK if step % 10 == 0 else StorageType.MEMORY
                kept = checkpointer.save_checkpoint(ckpt, f"global_step{step}", {"step": step}, storage_type=where)
            else:
                kept = engine.save_checkpoint(ckpt, client_state={"step": step})
            assert kept or ("being written out" in told[-1] and time.monotonic() < until), told
        if dies and last_to_die and step == begun + 1:
            killed_some_time(0.8)
        while life < kills and step >= steps - 5:  # until it is killed
            time.sleep(0.02)
    if checkpointer:
        assert checkpointer.wait_latest_checkpoint(60), told
    write(place / f"done-{rank}.json", {"digest": digest(engine), "told": told})
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(text) for text in sys.argv[2:5]), sys.argv[5])
