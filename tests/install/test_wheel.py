"""The wheel: what is in it, what it asks of a system, and that it works where nothing else of Troupe is."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import BARE, ROOT, echo, run

# What manylinux takes for granted: https://github.com/pypa/auditwheel, policies.
OF_EVERY_SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-x86-64\.so\.2")


@pytest.fixture(scope="session")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(into)
    return into


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with nothing but the wheel."""
    into = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", into], check=True)
    pip = [sys.executable, "-m", "pip", "--python", into / "bin/python"]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    return into


def native(unpacked: Path) -> list[Path]:
    return [p for p in unpacked.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]


def as_number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_it_is_small(wheel: Path, unpacked: Path) -> None:
    assert wheel.stat().st_size <= 15 << 20
    assert sum(p.stat().st_size for p in unpacked.rglob("*") if p.is_file()) <= 40 << 20


def test_it_brings_every_library_that_a_system_need_not_have(unpacked: Path) -> None:
    files = native(unpacked)
    brought = {p.name for p in files}
    for path in files:
        said = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True)
        needed = set(re.findall(r"NEEDED\s+(\S+)", said.stdout))
        missing = {name for name in needed - brought if not OF_EVERY_SYSTEM.fullmatch(name)}
        assert not missing, f"{path.name} needs {missing}"


def test_its_tag_is_what_its_files_ask_of_a_system(wheel: Path, unpacked: Path) -> None:
    tag = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    symbols = "".join(
        subprocess.run(["objdump", "-T", p], capture_output=True, text=True).stdout
        for p in native(unpacked)
    )
    glibc = max(as_number(v) for v in re.findall(r"GLIBC_([\d.]+)\)", symbols))
    assert glibc <= (int(tag[1]), int(tag[2]))
    # GCC 12's; Ubuntu 22.04 has it.
    assert max(as_number(v) for v in re.findall(r"GLIBCXX_([\d.]+)\)", symbols)) <= (3, 4, 30)


def test_each_library_comes_with_its_licence(unpacked: Path) -> None:
    folder = next(unpacked.rglob("share/doc/troupe/licenses"))
    bundled = [p for p in native(unpacked) if p.parent.name == "troupe" and "libtroupe_" not in p.name]
    # Cap'n Proto and OpenSSL are one package each, of three and two libraries.
    assert len(list(folder.iterdir())) == len(bundled) - 3


def test_its_programs_work_alone(environment: Path) -> None:
    assert echo(environment / "bin/actor-launcher", "from", "the link") == "from the link\n"
    assert echo([environment / "bin/python", "-m", "troupe.run"], "a module") == "a module\n"


def test_it_has_the_program_under_each_of_its_names(build: Path, environment: Path) -> None:
    # Those of xpu_timer are in the wheel of others' names.
    names = [p.name for p in (build / "bin").iterdir() if p.is_symlink() and not p.name.startswith("xpu_")]
    assert "actor-launcher" in names
    for name in names:
        assert (environment / "bin" / name).exists(), f"{name}: in the build, not in the wheel"
        usage = "usage: troupe VERB " if name == "actor-troupe" else f"Usage: {name} "
        assert run(environment / "bin" / name, "--help").stdout.startswith(usage)
    assert echo([environment / "bin/troupe", "run"], "by verb") == "by verb\n"


def test_workers_run_the_environment_that_it_is_installed_into(environment: Path) -> None:
    ended = run(environment / "bin/actor-launcher", "--standalone", "-m", "site")
    assert f"'{environment}/lib/" in ended.stdout, ended.stderr


def test_python_finds_program_and_library(environment: Path) -> None:
    said = run(
        environment / "bin/python",
        "-c",
        "import ctypes, troupe, troupe.programs as p; ctypes.CDLL(str(p.library())); print(troupe.__version__, p.program())",
    )
    version = (ROOT / "VERSION").read_text().strip()
    assert said.stdout == f"{version} {environment}/bin/actor-troupe\n", said.stderr


def test_it_works_in_a_folder_of_its_own(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, tmp_path, wheel], check=True)
    said = run(
        *("python3", "-c", "import troupe.programs as p; print(p.program(), p.library())"),
        env={**BARE, "PYTHONPATH": str(tmp_path)},
    )
    assert said.stdout == f"{tmp_path}/bin/actor-troupe {tmp_path}/libexec/troupe/libtroupe_worker.so\n", said.stderr
    assert echo(tmp_path / "bin/actor-launcher", "x") == "x\n"


def test_a_wheel_without_programs_is_refused_with_what_to_do(tmp_path: Path) -> None:
    subprocess.run(["cp", "-rL", ROOT / "python", tmp_path / "python"], check=True)
    subprocess.run(["cp", ROOT / "VERSION", tmp_path], check=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path]
    ended = run(*pip, tmp_path / "python")
    assert ended.returncode != 0
    assert "This would install no programs" in ended.stdout + ended.stderr
    assert "./x wheel" in ended.stdout + ended.stderr
