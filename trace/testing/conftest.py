"""The tracing library before a program whose CUDA, NCCL and cuBLAS are the fakes of this folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

RANK, WORLD_SIZE = 3, 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", help="libtroupe_trace.so")
    parser.addoption("--fakes", help="the folder of trace_program and the fake libraries")


@dataclass
class Ended:
    """A program that has ended: what it said, and what the library has written."""

    told: dict[str, int]
    errors: str
    directory: Path

    def metrics(self) -> dict[str, float]:
        return read_metrics(self.directory)

    def value(self, name: str, **labels: str) -> float:
        """The one value with this name and these labels among its own."""
        return value_of(self.metrics(), name, **labels)


def read_metrics(directory: Path) -> dict[str, float]:
    text = (directory / f"troupe-trace-{RANK:05}.prom").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def value_of(metrics: dict[str, float], name: str, **labels: str) -> float:
    found = [
        value
        for key, value in metrics.items()
        if key.startswith(name + "{") and all(f'{k}="{v}"' in key for k, v in labels.items())
    ]
    assert len(found) == 1, f"{len(found)} of {name} {labels} among\n" + "\n".join(metrics)
    return found[0]


Start = Callable[..., subprocess.Popen]


@pytest.fixture
def library(pytestconfig: pytest.Config) -> Path:
    return Path(pytestconfig.getoption("--library")).resolve()


@pytest.fixture
def fakes(pytestconfig: pytest.Config) -> Path:
    return Path(pytestconfig.getoption("--fakes")).resolve()


@pytest.fixture
def start(library: Path, fakes: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a scenario; all launches are timed unless told otherwise."""
    running = []

    def starting(scenario: str, **environment: str) -> subprocess.Popen:
        told = {
            "TROUPE_TRACE_DIR": str(tmp_path),
            "TROUPE_TRACE_GEMM_EVERY": "1",
            "TROUPE_TRACE_COPY_EVERY": "1",
            "TROUPE_TRACE_LAUNCH_EVERY": "1",
            "RANK": str(RANK),
            "WORLD_SIZE": str(WORLD_SIZE),
            "LD_PRELOAD": str(library),
        }
        kept = {k: v for k, v in os.environ.items() if k == "PATH" or k.endswith("SAN_OPTIONS")}
        process = subprocess.Popen(
            [fakes / "trace_program", fakes / "libtrace_scenarios.so", scenario],
            env=kept | told | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield starting
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(start: Start, tmp_path: Path) -> Callable[..., Ended]:
    def running(scenario: str, **environment: str) -> Ended:
        process = start(scenario, **environment)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return Ended(json.loads(output or "{}"), errors, tmp_path)

    return running
