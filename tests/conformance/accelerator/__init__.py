"""A device with streams for tests, though there is none: device type "fake", two devices, in plain host memory.

`load()` builds it once and registers it as `torch.fake`. What is enqueued is a copy from the device to the host with
non_blocking=True; everything else waits for the current stream first. See fake.py for how a test steers it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from unittest import mock

import torch
from torch.utils import cpp_extension

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

_loaded = False


def load(folder: Path | None = None) -> None:
    """Builds it, where that folder does not hold it already, and registers it; called again it does nothing."""
    global _loaded
    if _loaded:
        return
    folder = folder or ROOT / "build" / "accelerator" / f"torch-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    _build(folder)
    from . import fake

    torch.utils.rename_privateuse1_backend("fake")
    torch._register_device_module("fake", fake)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _loaded = True


def _build(folder: Path) -> None:
    with open(folder / "builders", "w") as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        # With our own lock held no builder is active there: a lock of torch's was left by a killed builder.
        (folder / "lock").unlink(missing_ok=True)
        with mock.patch.dict(os.environ, {"CXX": "g++"}):
            cpp_extension.load(
                name="fake_device",
                sources=[str(HERE / "fake_device.cpp")],
                extra_cflags=["-O0", "-g0"],
                extra_include_paths=[str(ROOT)],
                build_directory=str(folder),
                is_python_module=False,
                with_cuda=False,
            )
