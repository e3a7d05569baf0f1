"""The channel of a real script to a node supervisor that a test plays."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest


@pytest.fixture
def supervisor(build: Path):
    """Listens; its name, and the process."""
    name = f"@troupe-test-{uuid.uuid4()}"
    probe = subprocess.Popen(
        [build / "tests/channel_probe", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert probe.stdout.readline() == "listens\n"
    yield name, probe
    probe.kill()
    probe.wait()


def test_a_process_that_hangs_with_the_interpreter_s_lock_still_answers(workers, supervisor) -> None:
    name, probe = supervisor
    (rank,) = workers(
        """
        import ctypes
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(10))
        print("hangs", flush=True)
        ctypes.PyDLL(None).sleep(600)
        """,
        environment={"TROUPE_CHANNEL": name, "TORCH_FR_BUFFER_SIZE": "100"},
    )
    hello = probe.stdout.readline()
    assert hello.startswith("WorkerHello(generation = 7)")
    assert 'torch = "' in hello and 'python = "3.' in hello
    assert rank.line() == "hangs"
    record, _ = probe.communicate("\n", timeout=60)
    assert "gloo:all_reduce" in record or "has no flight recorder" in record


def test_on_its_signal_a_process_writes_the_frames_of_its_threads(workers, supervisor, tmp_path) -> None:
    name, probe = supervisor
    frames = os.open(tmp_path / "frames", os.O_RDWR | os.O_CREAT, 0o600)
    (rank,) = workers(
        """
        import os, signal, torch
        from at_rest import show
        def hung_here():
            os.kill(os.getpid(), int(os.environ["TROUPE_STACKS_SIGNAL"]))
            show()
        hung_here()
        """,
        environment={
            "TROUPE_CHANNEL": name,
            "TROUPE_STACKS_FD": str(frames),
            "TROUPE_STACKS_SIGNAL": "40",
        },
        pass_fds=(frames,),
    )
    assert "stacksSignal = 40" in probe.stdout.readline()
    assert rank.line() == "here"
    assert "hung_here" in (tmp_path / "frames").read_text()
    rank.go()
    rank.end()
    os.close(frames)
