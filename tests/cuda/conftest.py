from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", required=True, help="libtroupe_trace.so of a build")
    parser.addoption("--checks", nargs="+", required=True, help="the files that are compiled, as seen from the root")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", metafunc.config.getoption("--checks"))
