"""What is said here of CUDA's, NVML's and NCCL's interfaces is what headers of CUDA 12 and 13 and of NCCL say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "scripts/cuda").glob("*.txt"))


@pytest.fixture(scope="session")
def folders() -> dict[str, Path]:
    """By the list that names the packages; fetched where CI runs, and else only used where they are already."""
    in_ci = os.environ.get("CI") == "true"
    got = subprocess.run(
        [sys.executable, ROOT / "scripts/cuda_headers", *([] if in_ci else ["--offline"])], capture_output=True, text=True
    )
    if got.returncode != 0:
        (pytest.fail if in_ci else pytest.skip)(got.stderr.strip())
    return dict(zip((path.stem for path in LISTS), map(Path, got.stdout.splitlines()), strict=True))


def compiled(check: str, headers: Path) -> subprocess.CompletedProcess[str]:
    line = [os.environ.get("CXX", "c++"), "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT]
    return subprocess.run([*line, "-isystem", headers, ROOT / check], capture_output=True, text=True)


@pytest.mark.parametrize("of", [path.stem for path in LISTS])
def test_they_say_the_same(folders: dict[str, Path], of: str, check: str) -> None:
    done = compiled(check, folders[of])
    assert done.returncode == 0, done.stderr


def test_the_lists_are_of_both_versions(folders: dict[str, Path]) -> None:
    versions = {
        of: int(re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text())[1]) // 1000
        for of, folder in folders.items()
    }
    assert versions == {"cuda-12": 12, "cuda-13": 13}


def test_a_difference_is_an_error(folders: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A check that compiles whatever the headers say would be none."""
    for of, folder in folders.items():
        other = tmp_path / of
        shutil.copytree(folder, other)
        for header, declared in (("nccl.h", r"size_t (count|sendcount)(?=,\s+ncclDataType_t)"), ("cuda.h", r"size_t (bytesize)(?=\))")):
            text, changed = re.subn(declared, r"int \1", (other / header).read_text())
            assert changed > 0, (of, header)
            (other / header).write_text(text)
        checks = request.config.getoption("--checks")
        assert [check for check in checks if compiled(check, other).returncode == 0] == [], of
