"""nvcc, where it is, compiles programs for a device. It needs none."""

from __future__ import annotations

from pathlib import Path


def test_it_compiles(kernel: Path) -> None:
    assert kernel.read_bytes()[:4] == b"\x7fELF"
