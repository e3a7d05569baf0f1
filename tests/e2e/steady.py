"""Trains with gloo, and does what takes long and is no hang: nothing may be said of it. Its argument: seconds of each."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

LONG = float(sys.argv[1])
CHECKPOINT = Path(sys.argv[2])
STEPS = 30
BATCH = 16


class SlowToWrite:
    """As a large file on a slow file system."""

    def __getstate__(self) -> dict[str, int]:
        time.sleep(LONG)
        return {}


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, index: int) -> torch.Tensor:
        if index % (7 * BATCH) == 0:
            time.sleep(random.uniform(0.2, 0.8))
        return torch.randn(64)


def store(data: bytes) -> None:
    """Sends to a slow storage: its process stands in one call, and only the connection tells that it moves."""
    storage = socket.create_server(("127.0.0.1", 0))

    def take() -> None:
        taken, _ = storage.accept()
        with taken:
            while piece := taken.recv(1 << 16):
                time.sleep(LONG * len(piece) / len(data))

    with contextlib.ExitStack() as ends:
        server = os.fork()
        if server == 0:
            take()
            os._exit(0)
        ends.callback(os.waitpid, server, 0)
        ends.enter_context(socket.create_connection(storage.getsockname())).sendall(data)


def compile_something() -> None:
    """Waits for a child, which waits for one that computes."""
    computes = f"timeout {LONG} sh -c 'while :; do :; done'"
    subprocess.run(["sh", "-c", f"{computes}; true"], check=True)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(work: float) -> None:
        for step, x in enumerate(torch.utils.data.DataLoader(Data(), BATCH, num_workers=1)):
            if step == 0 and rank == 1:
                time.sleep(LONG)  # compiles
            time.sleep(work)
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

    train(0.02)
    if rank == 0:
        torch.save({"model": model.state_dict(), "more": SlowToWrite()}, CHECKPOINT)
        store(bytes(20 << 20))
    if rank == 2:
        compile_something()
    dist.barrier()
    model.eval()
    with torch.no_grad():
        until = time.monotonic() + (LONG if rank == 3 else 0.3)
        while time.monotonic() < until:
            model.module(torch.randn(BATCH, 64))
            time.sleep(0.01)
    dist.barrier()
    model.train()
    gc.collect()
    train(0.1)  # five times as long, and regular
    if rank == 0:
        print("finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
