"""What storage.py has trained: see storage_state.py. Says what it loads, saves and is told to a file of its own."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import storage_state
import torch
import torch.distributed as dist
from troupe.checkpoint import CheckpointError, DdpCheckpointer, KeepLatestStep, StorageType

DISK_EVERY = 10  # steps
ASKS_COPIES, ASKS_DISK = 4, 7  # steps after each of them
PATIENCE = 2.0  # seconds, for which training waits to be told
ENDS_WITHIN = 120.0

asked = argparse.ArgumentParser()
asked.add_argument("--place")
asked.add_argument("--told", type=Path)
asked.add_argument("--procs", type=int)
asked.add_argument("--words", type=int)
asked.add_argument("--keep", type=int)
asked.add_argument("--pace", type=float, help="seconds a step takes at least")
asked.add_argument("--redundancy", type=json.loads)
chosen = asked.parse_args()
rank, generation, machine = (int(os.environ[name]) for name in ("RANK", "TROUPE_GENERATION", "CHAOS_MACHINE"))
file = os.open(chosen.told / f"{generation}-{rank}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
comes_from: list[str] = []


def say(event: str, **what: Any) -> None:
    own = {"rank": rank, "generation": generation, "machine": machine, "pid": os.getpid()}
    os.write(file, (json.dumps({"event": event, "t": time.monotonic(), **own, **what}) + "\n").encode())


class Told(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if found := re.search(r"step \d+.* comes from (.*)", text):
            comes_from.append(found[1])
        elif record.levelno >= logging.WARNING:
            say("log", text=text[:400])


def finish(checkpointer: DdpCheckpointer, state: dict[str, Any]) -> None:
    """Until the last step is complete. Its sum is told of what was trained."""
    end = time.monotonic() + ENDS_WITHIN
    while True:
        saved = checkpointer.save_checkpoint(state["step"], state)
        if saved and checkpointer.wait_latest_checkpoint(30):
            break
        if time.monotonic() > end:
            raise RuntimeError("the last step is not complete in time")
        time.sleep(0.2)
    say("final", step=state["step"], sum=storage_state.digest(state))


def train(checkpointer: DdpCheckpointer, state: dict[str, Any]) -> None:
    """Until rank 0 finds the file that says at which step it ends; at least one step."""
    enough, loaded, on_disk = chosen.told / "enough", state["step"], 0
    while True:
        began = time.monotonic()
        pushed = torch.cat([storage_state.push(rank, state["step"] + 1), torch.zeros(1)])
        if rank == 0 and enough.exists():
            pushed[-1] = int(enough.read_text())
        dist.all_reduce(pushed)
        end = int(pushed[-1])
        if end and state["step"] >= end and state["step"] > loaded:
            return
        storage_state.advance(state, pushed[:-1])
        step = state["step"]
        to = StorageType.MEMORY if step % DISK_EVERY else StorageType.DISK
        if checkpointer.save_checkpoint(step, state, storage_type=to):
            say("saved", step=step)
            on_disk = on_disk if step % DISK_EVERY else step
        else:
            say("unsaved", step=step)
        if step % DISK_EVERY == ASKS_DISK and on_disk:
            complete = checkpointer.wait_latest_checkpoint(PATIENCE)
            say("complete" if complete else "unknown", step=on_disk)
        if step % DISK_EVERY == ASKS_COPIES and chosen.redundancy:
            held = checkpointer.wait_latest_copies(PATIENCE)
            if held is not None:
                say("held", step=held)
        time.sleep(max(0.0, began + chosen.pace - time.monotonic()))


def main() -> None:
    log = logging.getLogger("troupe.checkpoint")
    log.setLevel(logging.INFO)
    log.addHandler(Told())
    say("begin")
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    try:
        checkpointer = DdpCheckpointer(
            chosen.place,
            local_shard_num=chosen.procs,
            global_shard_num=dist.get_world_size(),
            deletion_strategy=KeepLatestStep(chosen.keep, chosen.place),
            save_timeout=60,
            **chosen.redundancy,
        )
        state = checkpointer.load_checkpoint()
    except CheckpointError as error:
        say("refused", why=str(error))
        raise
    source = comes_from[-1] if comes_from else "nothing"
    state = state or storage_state.begun(rank, chosen.words)
    say("loaded", step=state["step"], source=source, sum=storage_state.digest(state))
    train(checkpointer, state)
    finish(checkpointer, state)
    checkpointer.close()
    dist.destroy_process_group()


try:
    main()
except Exception as error:
    say("raised", what=type(error).__name__, why=str(error)[:400], at=traceback.format_exc()[-1500:])
    traceback.print_exc()
    sys.exit(1)
