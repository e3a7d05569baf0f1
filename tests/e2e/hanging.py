"""Trains with gloo, and its rank 2 stands still when a file tells it to: see hangs.py, which drives it.

It goes on at SIGUSR1, so one job shows many hangs. Each says when it begins, and in which process.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

CONTROL = Path(sys.argv[1])
STEPS = int(sys.argv[2])
WORK = float(sys.argv[3])  # seconds of each step beside the model
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


def main() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGUSR1, released)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, x in enumerate(torch.utils.data.DataLoader(Data(rank), BATCH, num_workers=1)):
        if rank == CULPRIT and (kind := asked("step")):
            stand_still(kind)
        with contextlib.suppress(GoOn):
            time.sleep(WORK * 2 if slowed else WORK)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step} at {time.time():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
