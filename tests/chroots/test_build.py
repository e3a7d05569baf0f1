"""`./x build`, as README.md has it, in the smallest Debian there is."""

from __future__ import annotations

import re
from typing import Iterator

import pytest
from conftest import System, block, clean

BUILD = block("./x build")


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    if request.param == "bookworm":
        yield request.getfixturevalue("bookworm")
        return
    with clean(request.param) as system:
        system.put_checkout()
        yield system


def packages(system: System) -> str:
    return system.must("dpkg-query -W")


def test_it_installs_nothing_where_nobody_can_be_asked(system: System) -> None:
    before = packages(system)
    ended = system.run(BUILD)
    assert ended.status != 0
    assert len(ended.output.splitlines()) == 1
    assert "./x --yes build" in ended.output
    command = re.search(r"apt-get update && apt-get install .*?(?=  )", ended.output)
    # Each package that it names is one.
    system.must(command[0].replace(" install ", " install --simulate "))
    assert packages(system) == before


def test_it_installs_nothing_that_was_not_agreed_to(system: System) -> None:
    before = packages(system)
    ended = system.run(BUILD, answer="n")
    assert ended.status != 0
    assert "nothing was installed" in ended.output
    assert packages(system) == before


def test_it_builds_from_nothing(system: System) -> None:
    assert "command -v" not in BUILD and system.run("command -v python3 git sudo").status != 0
    system.must(BUILD, answer="y", limit=3600)
    log = system.checkout / "build/logs/build-release.log"
    assert "warning:" not in log.read_text()
    assert "it runs" in system.must("build/release/bin/actor-launcher --standalone --no-python echo it runs")
