from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", required=True, help="libtroupe_trace.so of a build")
    parser.addoption("--checks", nargs="+", required=True, help="the files that are compiled, as seen from the root")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", metafunc.config.getoption("--checks"))


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program for a device, as nvcc makes it."""
    if NVCC is None:
        pytest.skip("there is no nvcc")
    program = tmp_path_factory.mktemp("cuda") / "kernel"
    # The library stands before a shared one alone.
    line = [NVCC, "-std=c++17", "-cudart", "shared", "-o", program, Path(__file__).with_name("kernel.cu")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return program
