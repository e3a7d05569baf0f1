"""Where nvcc is: programs for a device compile; where a device is as well, they run, and what the tracing library counts is true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
KERNELS = 2_000


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if NVCC is None:
        pytest.skip("there is no nvcc")
    program = tmp_path_factory.mktemp("cuda") / "kernel"
    # The library stands before a shared one alone.
    line = [NVCC, "-std=c++17", "-cudart", "shared", "-o", program, Path(__file__).with_name("kernel.cu")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return program


def test_it_compiles(kernel: Path) -> None:
    assert kernel.read_bytes()[:4] == b"\x7fELF"


@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="there is no device")
def test_calls_of_a_real_device_are_counted(kernel: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LD_PRELOAD": str(Path(request.config.getoption("--library")).resolve()),
        "TROUPE_TRACE_DIR": str(tmp_path),
        "RANK": "0",
        "WORLD_SIZE": "1",
    }
    done = subprocess.run([kernel], capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{KERNELS}\n"), done.stderr
    figures = (tmp_path / "troupe-trace-00000.prom").read_text()
    counted = {
        which: float(re.search(rf'^troupe_trace_calls_total{{.*class="{which}".*}} (\S+)$', figures, re.M)[1])
        for which in ("launch", "copy")
    }
    assert counted == {"launch": KERNELS, "copy": 2}
