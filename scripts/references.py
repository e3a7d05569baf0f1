#!/usr/bin/env python3
"""The reference pages that programs and sources dictate: docs/configuration.md and docs/events.md.

Usage: references.py --check|--write [--programs DIR]

  --check          say which page is out of date, and fail
  --write          bring the pages up to date
  --programs DIR   where the programs are (build/release/bin)

What stands between `<!-- NAME: begin … -->` and `<!-- NAME: end -->` of a page is written; the rest
is by hand.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from checks import event_page
from checks.blocks import replaced
from checks.project import Project

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = "docs/configuration.md"
BARE_BAR, BAR = r"(?<!\\)\|", r"\\|"
PROGRAMS = (
    *("actor-launcher", "actor-master", "actor-operator", "actor-shell", "actor-stacks"),
    *("troupe-dump", "troupe-probe"),
)


def manual(program: Path) -> str:
    """What the program prints of its options, as a part of a page."""
    printed = subprocess.run(
        [program, "--print-manual", "markdown"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    without_title = re.sub(r"\A# [^\n]*\n", "", printed)
    lower = re.sub(r"^#+ ", "### ", without_title, flags=re.M)
    # A bar ends a cell of a table, also one within `code`.
    return re.sub(
        r"^\| (`.*?`) \|", lambda m: f"| {re.sub(BARE_BAR, BAR, m[1])} |", lower, flags=re.M
    )


def configuration(project: Project, programs: Path) -> str:
    page = project.text(CONFIGURATION)
    for name in PROGRAMS:
        page = replaced(page, name, manual(programs / name))
    return page


def main(arguments: list[str]) -> int:
    programs = ROOT / "build/release/bin"
    if "--programs" in arguments:
        at = arguments.index("--programs")
        programs = Path(arguments[at + 1])
        del arguments[at : at + 2]
    if arguments not in (["--check"], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    if missing := [name for name in PROGRAMS if not (programs / name).exists()]:
        print(f"{programs} has no {', '.join(missing)}: ./x docs builds them", file=sys.stderr)
        return 2
    project = Project.at(ROOT)
    pages = {
        CONFIGURATION: configuration(project, programs),
        event_page.PAGE: event_page.rewritten(project),
    }
    stale = {path: text for path, text in pages.items() if text != project.text(path)}
    for path, text in stale.items():
        if arguments == ["--write"]:
            (ROOT / path).write_text(text, encoding="utf-8")
        print(
            f"{path} {'is written anew' if arguments == ['--write'] else 'is out of date: ./x docs'}"
        )
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
