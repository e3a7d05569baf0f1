"""Where nvcc and a device are, programs for it run, and what the tracing library counts is true."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

KERNELS = 2_000


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
