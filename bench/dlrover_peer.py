"""DLRover's Flash Checkpoint in a process of its own, for snapshot.py: it is asked for one save or load after the other."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
INSTALL = "pip install dlrover==0.6.1 psutil pynvml deprecated grpcio protobuf"


class Peer:
    """Raises ImportError where DLRover is not installed."""

    def __init__(self, size: int, tensors: int):
        import dlrover.trainer.torch.flash_checkpoint.ddp  # noqa: F401

        self.place = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import dlrover_peer; dlrover_peer.serve()", str(size), str(tensors)],
            cwd=self.place.name,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(BENCH), *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(Path(self.place.name) / "log", "wb"),
            text=True,
        )  # fmt: skip
        self._said()

    def seconds(self, what: str) -> float:
        """Of a "save" or a "load"."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self._said()

    def _said(self) -> float:
        """What it logs goes to the same place."""
        for line in self.process.stdout:
            if line.startswith("took "):
                return float(line.split()[1])
        log = (Path(self.place.name) / "log").read_text(errors="replace")
        raise RuntimeError(f"DLRover's process ended:\n{log[-2000:]}")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.place.cleanup()


def serve() -> None:
    from dlrover.trainer.torch.flash_checkpoint.ddp import DdpCheckpointer, StorageType
    from snapshot import state_of, touch

    size, tensors = map(int, sys.argv[1:])
    state = state_of(size, tensors)
    checkpointer = DdpCheckpointer(".")
    print("took 0", flush=True)
    step = 0
    for order in sys.stdin:
        began = time.perf_counter()
        if order == "save\n":
            step += 1
            checkpointer.save_checkpoint(step, state, storage_type=StorageType.MEMORY)
        else:
            touch(checkpointer.load_checkpoint())
        print(f"took {time.perf_counter() - began}", flush=True)
