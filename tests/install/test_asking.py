"""`./x` installs nothing unasked. It stands alone in a folder; Debian's tools are scripts that note what is asked of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BARE, ROOT

TOOLS = {
    "dpkg-query": 'sed "s/^/ii  /" "$STATE/installed"',
    "apt-get": 'echo "$*" >>"$STATE/apt"; for word; do echo "$word"; done >>"$STATE/installed"',
    "cmake": 'echo "$*" >>"$STATE/cmake"',
    "python3": 'echo "$*" >>"$STATE/python"; exit 1',
    "sudo": 'echo "$*" >>"$STATE/sudo"; exec "$@"',
    "id": 'echo "${USER_ID:-0}"',
}


class Checkout:
    def __init__(self, place: Path) -> None:
        self.place, self.state = place / "checkout", place / "state"
        (self.place / "scripts").mkdir(parents=True)
        self.state.mkdir()
        (self.state / "installed").touch()
        shutil.copy(ROOT / "x", self.place)
        shutil.copy(ROOT / "scripts/requirements.txt", self.place / "scripts")
        tools = place / "tools"
        tools.mkdir()
        for name, does in TOOLS.items():
            (tools / name).write_text(f"#!/bin/sh\n{does}\n")
            (tools / name).chmod(0o755)
        self.environment = {**BARE, "X_TOOLS": str(tools), "STATE": str(self.state)}

    def run(self, line: str, answer: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """With an answer: on a terminal."""
        return subprocess.run(
            ["sh", "-c", line] if answer is None else ["script", "-qec", line, "/dev/null"],
            cwd=self.place,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL if answer is None else None,
            input=None if answer is None else f"{answer}\n",
            capture_output=True,
            text=True,
            timeout=60,
        )

    def noted(self, tool: str) -> list[str]:
        path = self.state / tool
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_without_a_terminal_it_says_what_to_type(checkout: Checkout) -> None:
    ended = checkout.run("./x build")
    assert ended.returncode != 0
    (line,) = ended.stderr.splitlines()
    assert "apt-get update && apt-get install --no-install-recommends build-essential " in line
    assert "sudo" not in line
    assert "./x --yes build" in line
    assert not checkout.noted("apt") and not checkout.noted("cmake")


def test_to_a_user_it_says_it_with_sudo(checkout: Checkout) -> None:
    ended = checkout.run("./x build", USER_ID="1000")
    assert "sudo apt-get update && sudo apt-get install " in ended.stderr
    assert not checkout.noted("sudo")


def test_what_is_there_is_not_named(checkout: Checkout) -> None:
    (checkout.state / "installed").write_text("cmake\nccache\n")
    words = checkout.run("./x build").stderr.split()
    assert "capnproto" in words
    assert "cmake" not in words and "ccache" not in words


@pytest.mark.parametrize("answer", ["n", "", "nonsense"])
def test_only_yes_is_yes(checkout: Checkout, answer: str) -> None:
    ended = checkout.run("./x build", answer)
    assert ended.returncode != 0
    assert "libcapnp-dev" in ended.stdout and "[y/N]" in ended.stdout
    assert "nothing was installed" in ended.stdout
    assert not checkout.noted("apt") and not checkout.noted("cmake")


def test_agreed_to_it_installs_and_builds(checkout: Checkout) -> None:
    ended = checkout.run("./x build", "y")
    assert ended.returncode == 0, ended.stdout
    assert checkout.noted("apt")[0] == "update -qq"
    assert "libcapnp-dev" in checkout.noted("apt")[-1].split()
    assert checkout.noted("cmake")[-1].endswith("--target programs")
    # The second time nothing is missing.
    assert "[y/N]" not in checkout.run("./x build").stdout


@pytest.mark.parametrize(
    "line", ["./x --yes build", "./x build --yes", "CI=true ./x build", "CI=true ./x build release"]
)
def test_agreed_to_beforehand_it_does_not_ask(checkout: Checkout, line: str) -> None:
    ended = checkout.run(line)
    assert ended.returncode == 0, ended.stderr
    assert "libcapnp-dev" in checkout.noted("apt")[-1].split()
    assert not any("--yes" in words for words in checkout.noted("cmake"))


@pytest.mark.parametrize("verb", ["demo", "test", "setup"])
def test_pythons_packages_are_named_and_asked_for_as_well(checkout: Checkout, verb: str) -> None:
    ended = checkout.run(f"./x {verb}", "n")
    assert ended.returncode != 0
    assert "torch" in ended.stdout and "to download" in ended.stdout
    assert ended.stdout.count("[y/N]") == 1
    assert checkout.run(f"./x {verb}").returncode != 0
    assert not checkout.noted("apt") and not checkout.noted("python") and not checkout.noted("cmake")


@pytest.mark.parametrize(("line", "errors"), [("./x build", False), ("CI=true ./x build", True)])
def test_warnings_are_errors_in_ci(checkout: Checkout, line: str, errors: bool) -> None:
    checkout.run(f"{line} --yes")
    assert ("-DTROUPE_WERROR=ON" in checkout.noted("cmake")[0].split()) == errors
