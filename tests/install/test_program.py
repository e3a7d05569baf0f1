"""One program, which is what it is called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT, echo, run

VERSION = (ROOT / "VERSION").read_text().strip()


def test_a_verb_and_a_link_are_the_same(build: Path) -> None:
    assert echo([build / "bin/troupe", "run"], "by", "verb") == "by verb\n"
    assert echo(build / "bin/actor-launcher", "by", "link") == "by link\n"


@pytest.mark.parametrize(
    ("verb", "link"),
    [
        ("run", "actor-launcher"),
        ("master", "actor-master"),
        ("operator", "actor-operator"),
        ("shell", "actor-shell"),
        ("stacks", "actor-stacks"),
        ("dump", "troupe-dump"),
        ("trace", "xpu_timer_launch"),
        ("probe", "troupe-probe"),
    ],
)
def test_both_show_the_same_help(build: Path, verb: str, link: str) -> None:
    by_verb = run(build / "bin/troupe", verb, "--help").stdout
    assert by_verb.startswith(f"Usage: {link} ")
    assert run(build / "bin" / link, "--help").stdout == by_verb


def test_the_version_is_the_one_of_the_sources_with_the_commit(build: Path) -> None:
    said = {run(build / "bin/troupe", *words).stdout for words in (["--version"], ["run", "--version"])}
    assert len(said) == 1
    assert re.fullmatch(rf"troupe {re.escape(VERSION)}( \([0-9a-f]{{7,}}\+?\))?\n", said.pop())


def test_without_a_verb_it_tells_which_there_are(build: Path) -> None:
    ended = run(build / "bin/troupe")
    assert ended.returncode == 2
    assert "actor-launcher" in ended.stderr and ended.stdout == ""
    asked = run(build / "bin/troupe", "--help")
    assert (asked.returncode, asked.stdout) == (0, ended.stderr)


def test_an_unknown_verb_is_told_with_the_one_that_was_probably_meant(build: Path) -> None:
    ended = run(build / "bin/troupe", "mastre")
    assert (ended.returncode, ended.stderr) == (2, "troupe: 'mastre' is no verb; did you mean master?\n")
    assert run(build / "bin/troupe", "x").stderr == "troupe: 'x' is no verb (see troupe --help)\n"
