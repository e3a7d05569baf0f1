"""docs/screens.md: the screens as text, at two widths."""

from __future__ import annotations

import sys
from pathlib import Path

from . import machine
from .scenes import SCENES, Scene, fresh_job

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

from pages import with_part

COLUMNS = (80, 120)
PAGE = "docs/screens.md"


def recorded(scene: Scene) -> str:
    parts = [scene.words]
    for columns in COLUMNS:
        fresh_job()
        print(f"{scene.title}, {columns} columns", file=sys.stderr, flush=True)
        screen = scene.play(columns)
        parts.append(f"{columns} columns, exit code {screen.code}:")
        parts.append("\n".join(["```text", *screen.rows, "```"]))
    return "\n\n".join(parts)


def record(names: list[str]) -> int:
    """The named scenes, or all, each into its part of the page; 1 if one could not be played."""
    page = machine.CHECKOUT / PAGE
    missing = 0
    for scene in SCENES:
        if names and scene.name not in names:
            continue
        try:
            page.write_text(with_part(page.read_text(), scene.name, recorded(scene)))
        except (RuntimeError, TimeoutError) as reason:
            print(f"{scene.title} stays as it was: {reason}", file=sys.stderr)
            missing = 1
    return missing
