"""`cmake --install`: one program with links to it, its library, and what shells and people read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import BARE, ROOT, echo, run


@pytest.fixture(scope="session")
def prefix(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", build, "--prefix", into], check=True, capture_output=True)
    return into


def test_the_names_are_links_to_the_program(prefix: Path) -> None:
    assert {p.name: os.readlink(p) for p in (prefix / "bin").iterdir() if p.is_symlink()} == {
        "actor-launcher": "troupe",
        "actor-master": "troupe",
        "actor-operator": "troupe",
        "actor-shell": "troupe",
        "actor-stacks": "troupe",
        "actor-troupe": "troupe",
        "troupe-dump": "troupe",
        "troupe-probe": "troupe",
        "xpu_timer_launch": "troupe",
        "xpu_timer_stacktrace_viewer": "troupe",
    }
    assert echo(prefix / "bin/actor-launcher", "installed") == "installed\n"


def test_nothing_else_is_copied_from_the_system(prefix: Path) -> None:
    assert {p.name for p in (prefix / "libexec/troupe").iterdir()} == {
        "hooks",
        "libtroupe_python.so",
        "libtroupe_trace.so",
        "libtroupe_worker.so",
    }
    assert (prefix / "libexec/troupe/hooks/sitecustomize.py").is_file()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("actor-launcher", "--json-log FILE"),
        ("actor-master", "--json-log FILE"),
        ("actor-shell", "--json-log FILE"),
        ("actor-stacks", "--path DIR"),
        ("troupe-dump", "--samples N"),
        ("troupe-probe", "--box-pairs PAIRS"),
    ],
)
def test_each_name_has_its_manual_page_and_completion(prefix: Path, name: str, option: str) -> None:
    page = prefix / f"share/man/man1/{name}.1"
    shown = run("groff", "-man", "-Tascii", "-ww", "-P-cbu", page)
    assert option in shown.stdout and shown.stderr == ""
    assert f"-F _{name} {name}\n" in (prefix / f"share/bash-completion/completions/{name}").read_text()
    assert f"#compdef {name}\n" in (prefix / f"share/zsh/site-functions/_{name}").read_text()
    assert f"complete -c {name} " in (prefix / f"share/fish/vendor_completions.d/{name}.fish").read_text()


def test_bash_completes_options_and_their_values(prefix: Path) -> None:
    script = prefix / "share/bash-completion/completions/actor-launcher"
    ask = 'source "$1"; COMP_WORDS=(actor-launcher "${@:2}"); COMP_CWORD=$(($# - 1)); _actor-launcher; echo "${COMPREPLY[@]}"'

    def completed(*words: str) -> str:
        return run("bash", "-c", ask, "bash", script, *words).stdout.strip()

    assert completed("--rdzv-b") == "--rdzv-backend"
    assert completed("--rdzv-backend", "") == "static c10d"


def test_the_unit_for_systemd_starts_what_is_installed(prefix: Path, tmp_path: Path) -> None:
    unit = (prefix / "lib/systemd/system/actor-master@.service").read_text()
    assert "ExecStart=/usr/bin/actor-master --rdzv-id %i " in unit
    here = tmp_path / "actor-master@.service"
    here.write_text(unit.replace("/usr/bin/actor-master", str(prefix / "bin/actor-master")))
    checked = run("systemd-analyze", "verify", "--man=no", here)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_debian_package_holds_the_same_and_the_python_part(build: Path, tmp_path: Path) -> None:
    subprocess.run(["cpack", "-G", "DEB", "-B", tmp_path], cwd=build, check=True, capture_output=True)
    (package,) = tmp_path.glob("troupe_*.deb")
    control = run("dpkg-deb", "-f", package, "Depends").stdout
    assert "libcaf-core0.17" in control and "python3" in control
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True)
    usr = tmp_path / "root/usr"
    assert echo(usr / "bin/actor-launcher", "from the package") == "from the package\n"
    env = {**BARE, "PYTHONPATH": str(usr / "lib/python3/dist-packages"), "TROUPE_BIN_DIR": str(usr / "bin")}
    said = run("python3", "-c", "import troupe; print(troupe.__version__)", env=env)
    assert said.stdout == (ROOT / "VERSION").read_text(), said.stderr
    library = run("python3", "-c", "import troupe.programs as p; print(p.library())", env=env)
    assert library.stdout == f"{usr}/libexec/troupe/libtroupe_worker.so\n", library.stderr
