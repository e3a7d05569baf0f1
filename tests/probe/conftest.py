"""The program that is looked at, and the libraries that are put in the place of NVIDIA's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--program", required=True, help="the program troupe-probe of a build")
    parser.addoption("--fakes", required=True, help="the folder of the fake libraries")


@dataclass
class Probed:
    code: int
    out: str
    errors: str

    @property
    def report(self) -> Any:
        return json.loads(self.out)


Probe = Callable[..., Probed]


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("--program")).absolute()


def environment(**more: str) -> dict[str, str]:
    ours = ("TROUPE_", "FAKE_", "CUDA_", "LD_LIBRARY_PATH")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(ours)}, **more}


@pytest.fixture
def probe(program: Path) -> Probe:
    def run(*arguments: str, **variables: str) -> Probed:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
        )
        return Probed(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def simulated(probe: Probe, tmp_path: Path) -> Probe:
    """With the devices that a description says; as text, or as what becomes JSON."""

    def run(description: Any, *arguments: str) -> Probed:
        file = tmp_path / "devices.json"
        file.write_text(description if isinstance(description, str) else json.dumps(description))
        return probe(*arguments, TROUPE_PROBE_DEVICES=str(file))

    return run


@pytest.fixture
def nvidia(probe: Probe, request: pytest.FixtureRequest) -> Probe:
    """With fake libraries in the place of CUDA's driver, cuBLAS and NVML."""
    fakes = Path(request.config.getoption("--fakes"))
    missing = [n for n in ("cuda.so.1", "cublas.so.12", "nvidia-ml.so.1", "nccl.so.2") if not (fakes / f"lib{n}").exists()]
    # Without them the real program would say, rightly, that there is no device.
    assert not missing, f"{fakes} has no fake lib{missing[0]}: build the target once_programs"

    def run(*arguments: str, devices: int = 2, **settings: str) -> Probed:
        return probe(*arguments, LD_LIBRARY_PATH=str(fakes), FAKE_DEVICES=str(devices), **settings)

    return run
