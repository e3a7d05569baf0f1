"""Our command line beside the installed torchrun's, in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--probe", required=True, help="the options_probe of a build")
    parser.addoption("--seed", type=int, default=1, help="of the generated command lines")
    parser.addoption("--cases", type=int, default=2400, help="how many are generated")
