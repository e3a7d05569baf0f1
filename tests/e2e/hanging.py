"""Trains with gloo, and its rank 2 stands still when a file tells it to: see hangs.py, which drives it.

It goes on at SIGUSR1, so one job shows many hangs. Each says when it begins, and in which process. The last argument names the kind
of program: most of them make no steps of an optimizer of PyTorch.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

CONTROL = Path(sys.argv[1])
STEPS = int(sys.argv[2])
WORK = float(sys.argv[3])  # seconds of each step beside the model
PROGRAM = sys.argv[4] if len(sys.argv) > 4 else "ddp"
CULPRIT = 2
BATCH = 16

lock = threading.Lock()
slowed = False


class GoOn(Exception):
    """SIGUSR1 has come."""


def released(*_: object) -> None:
    global slowed
    slowed = False
    raise GoOn


def told(kind: str) -> None:
    print(f"hang {kind} at {time.time():.3f} pid {os.getpid()}", flush=True)


def asked(which: str) -> str:
    """What the file says, once."""
    file = CONTROL / which
    try:
        kind = file.read_text()
        file.unlink()
    except FileNotFoundError:
        return ""
    told(kind)
    return kind


def lock_twice() -> None:
    lock.acquire()
    try:
        lock.acquire()
    finally:
        lock.release()


def spin() -> None:
    x = 0
    while True:
        x += 1


def start_programs() -> None:
    """As a thread that reads gauges of the machine does."""
    while True:
        subprocess.run(["true"], check=True)
        time.sleep(0.3)


def upload() -> None:
    """As a thread that sends what was logged to a service, here one of this process."""
    service = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(service.getsockname())
    taken, _ = service.accept()
    piece = b"x" * 65536
    while True:
        client.sendall(piece)
        for_it = len(piece)
        while for_it:
            for_it -= len(taken.recv(for_it))
        time.sleep(0.01)


def deadlock_beside(noise: Callable[[], None]) -> None:
    threading.Thread(target=noise, daemon=True).start()
    lock_twice()


def keep_the_interpreter() -> None:
    ends = os.pipe()
    buffer = ctypes.create_string_buffer(1)
    ctypes.PyDLL(None).read(ends[0], buffer, 1)  # does not let other threads run meanwhile


def leave_the_order() -> None:
    dist.barrier()


def read_from_storage() -> None:
    os.read(os.pipe()[0], 1)


def write_to_cache() -> None:
    file = os.open(CONTROL / "full" / "cache", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while True:
        try:
            os.write(file, b"x" * 65536)
        except OSError as why:
            if why.errno != errno.ENOSPC:
                raise
            time.sleep(0.02)


def spoil_page() -> None:
    fd = int(os.environ["TROUPE_PROGRESS_FD"])
    os.pwrite(fd, os.urandom(os.fstat(fd).st_size), 0)


def not_dumpable() -> None:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    spin()


def stand_still(kind: str) -> None:
    global slowed
    if kind == "slow":
        slowed = True
    elif kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        with contextlib.suppress(GoOn):
            {
                "deadlock": lock_twice,
                "programs": lambda: deadlock_beside(start_programs),
                "upload": lambda: deadlock_beside(upload),
                "spin": spin,
                "interpreter": keep_the_interpreter,
                "order": leave_the_order,
                "loader": read_from_storage,
                "disk": write_to_cache,
                "page": spoil_page,
                "undumpable": not_dumpable,
            }[kind]()


class Data(torch.utils.data.Dataset):
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rank == CULPRIT and (kind := asked("loader")):
            stand_still(kind)
        return torch.randn(64)


def obey(rank: int) -> None:
    """The order to stand still, and the work of a step."""
    if rank == CULPRIT and (kind := asked("step")):
        stand_still(kind)
    with contextlib.suppress(GoOn):
        time.sleep(WORK * 2 if slowed else WORK)


def shown(step: int) -> None:
    if dist.get_rank() == 0:
        print(f"step {step} at {time.time():.4f}", flush=True)


def layers() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))


def train_with_ddp(rank: int) -> None:
    model = torch.nn.parallel.DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, x in enumerate(torch.utils.data.DataLoader(Data(rank), BATCH, num_workers=1)):
        obey(rank)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        shown(step)


def loop_of_collectives(rank: int) -> None:
    value = torch.ones(1)
    for step in range(STEPS):
        obey(rank)
        dist.all_reduce(value)
        shown(step)


def update_by_hand(rank: int) -> None:
    model = layers()
    for step in range(STEPS):
        obey(rank)
        model(torch.randn(BATCH, 64)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        shown(step)


class ShardedOptimizer:
    """As Megatron's and DeepSpeed's own: no class of PyTorch, and collectives of one flat buffer."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.parameters = list(model.parameters())

    def step(self) -> None:
        flat = torch.cat([p.grad.flatten() for p in self.parameters])
        dist.all_reduce(flat)
        mine = flat.chunk(dist.get_world_size())[dist.get_rank()].clone()
        parts = [torch.empty_like(part) for part in flat.chunk(dist.get_world_size())]
        dist.all_gather(parts, mine)
        at = 0
        whole = torch.cat(parts)
        with torch.no_grad():
            for p in self.parameters:
                p -= 0.01 * whole[at : at + p.numel()].view_as(p)
                p.grad = None
                at += p.numel()


def train_with_an_engine(rank: int) -> None:
    model = layers()
    optimizer = ShardedOptimizer(model)
    for step in range(STEPS):
        obey(rank)
        model(torch.randn(BATCH, 64)).sum().backward()
        optimizer.step()
        shown(step)


@torch.no_grad()
def infer(rank: int) -> None:
    model = layers().eval()
    for step, x in enumerate(torch.utils.data.DataLoader(Data(rank), BATCH, num_workers=1)):
        obey(rank)
        found = model(x)
        dist.all_gather([torch.empty_like(found) for _ in range(dist.get_world_size())], found)
        shown(step)


def pass_messages_on(rank: int) -> None:
    """Each rank to the next, as stages of a pipeline do."""
    size = dist.get_world_size()
    mine, theirs = torch.ones(4096), torch.empty(4096)
    for step in range(STEPS):
        obey(rank)
        sent = dist.isend(mine, (rank + 1) % size)
        dist.recv(theirs, (rank - 1) % size)
        sent.wait()
        shown(step)


PROGRAMS = {
    "ddp": train_with_ddp,
    "all_reduce": loop_of_collectives,
    "by_hand": update_by_hand,
    "engine": train_with_an_engine,
    "inference": infer,
    "messages": pass_messages_on,
}


def main() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGUSR1, released)
    dist.init_process_group("gloo")
    PROGRAMS[PROGRAM](dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
