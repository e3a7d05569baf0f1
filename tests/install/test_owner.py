"""The names on a package index: ours depend on no name that others own, and others' files in the place of ours are told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Environment, echo, packed, run

VERSION = (ROOT / "VERSION").read_text().strip()
OURS, NAMES = "actor-launcher", "actor-launcher-dlrover-names"
# Another project's distribution, as far as it matters: it has our module's name and a command.
STRANGER = {
    "troupe/__init__.py": "__version__ = '0.1.0'\n",
    "troupe/cli.py": "def main():\n    print('the other one')\n",
}
COMMAND = "[console_scripts]\ntroupe = troupe.cli:main\n"


def stranger(into: Path, version: str) -> Path:
    return packed(into, "troupe", version, {**STRANGER, f"troupe-{version}.dist-info/entry_points.txt": COMMAND})


@pytest.fixture
def index(wheels: list[Path], tmp_path: Path) -> Path:
    """What an index would offer: ours, and another project's `troupe` of our version and of a later one."""
    into = tmp_path / "index"
    into.mkdir()
    for wheel in wheels:
        shutil.copy(wheel, into)
    stranger(into, VERSION)
    stranger(into, "99")
    return into


def test_no_wheel_brings_or_is_replaced_by_what_others_own(wheels: list[Path], index: Path, tmp_path: Path) -> None:
    offered = ("--no-index", "--find-links", index)
    for n, (given, brings) in enumerate(
        ((wheels[:1], {OURS}), (wheels[1:], {OURS, NAMES}), (wheels, {OURS, NAMES}), (wheels[::-1], {OURS, NAMES}))
    ):
        environment = Environment(tmp_path / f"venv{n}")
        environment.pip("install", "-q", *offered, *given)
        assert environment.installed() == dict.fromkeys(brings, VERSION)
        environment.pip("install", "-q", "-U", *offered, *environment.installed())
        assert environment.installed() == dict.fromkeys(brings, VERSION)
        assert echo(environment.bin / "actor-launcher", "kept") == "kept\n"
        assert environment.python("-c", "import troupe; print(troupe.__version__)").stdout == f"{VERSION}\n"


def test_another_projects_files_are_told_and_the_programs_stay(wheel: Path, index: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(wheel)
    doctor = (environment.bin / "actor-launcher", "doctor")
    assert "another project" not in run(*doctor).stdout
    # As `pip install -U troupe` does: its module and its command are written over ours.
    environment.pip("install", "-q", "--no-index", "--find-links", index, "troupe")
    assert echo(environment.bin / "actor-launcher", "kept") == "kept\n"
    assert environment.python("-c", "import troupe; print(troupe.__version__)").stdout == "0.1.0\n"
    for command in (("-c", "import troupe.programs"), ("-m", "troupe.run", "--version")):
        said = environment.python(*command)
        (line,) = [one for one in said.stderr.splitlines() if one.startswith("ImportError:")]
        assert said.returncode == 1
        assert "troupe 99, another project" in line and "pip uninstall troupe" in line and "actor_launcher-" in line
    found = " ".join(run(*doctor).stdout.split())
    assert "warning package troupe the distribution troupe 99 of another project is installed beside actor-launcher" in found
    # Its removal takes our file of the same name with it.
    environment.pip("uninstall", "-q", "-y", "troupe")
    said = environment.python("-c", "import troupe.programs")
    assert "is missing or another project's" in said.stderr.splitlines()[-1]
    environment.pip("install", "-q", "--force-reinstall", "--no-deps", "--no-index", wheel)
    assert environment.python("-m", "troupe.run", "--version").stdout.startswith(f"troupe {VERSION}")
    assert "another project" not in run(*doctor).stdout


def test_where_only_the_other_project_is_the_doctor_says_that_ours_is_not_there(build: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(stranger(tmp_path, "0.1.0"))
    found = " ".join(run(build / "bin/actor-launcher", "doctor", "--python", environment.bin / "python").stdout.split())
    assert "note package troupe the distribution troupe 0.1.0 of another project is installed" in found
    assert "import troupe is not ours" in found
