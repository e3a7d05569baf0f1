"""What --json-log writes is what docs/events.md says it does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from conftest import ROOT, Start

ROW = re.compile(r"^\| `(\w+)` \| ([a-z*, ]+) \| (–|`[^|]*`) \| `", re.M)
KEYS = {"time", "level", "component", "event", "text", "fields", "monotonic_ns"}
SOMETIMES = {"job", "node"}
TYPES = {"integer": int, "number": (int, float), "boolean": bool, "string": str}


def page() -> str:
    return (ROOT / "docs/events.md").read_text()


def events_on_the_page() -> dict[str, tuple[set[str], set[str]]]:
    """Of each event its levels and its fields."""
    known: dict[str, tuple[set[str], set[str]]] = {}
    for name, levels, fields in ROW.findall(page()):
        of_name = known.setdefault(name, (set(), set()))
        of_name[0].update(levels.replace("info*", "info, notice").split(", "))
        of_name[1].update(re.findall(r"`(\w+)`", fields))
    return known


def types_on_the_page() -> dict[str, object]:
    rows = re.findall(r"^\| `(\w+)` \| (integer|number|boolean|string) \|", page(), re.M)
    return {name: TYPES[kind] for name, kind in rows}


def test_a_run_with_a_failure_writes_what_the_page_says(shell: Start, tmp_path: Path) -> None:
    told = tmp_path / "events.json"
    run = shell(
        '[ "$TORCHELASTIC_RESTART_COUNT$RANK" = 01 ] && kill -9 $$; exit 0',
        procs=2,
        restarts=1,
        options=[f"--json-log={told}"],
    )
    assert run.wait(60) == [0], run.err()
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    known, types = events_on_the_page(), types_on_the_page()
    seen = {line["event"] for line in lines}
    assert {"worker_failed", "restarting", "training_again", "job_concluded"} <= seen
    for line in lines:
        assert KEYS <= line.keys() <= KEYS | SOMETIMES, line
        assert line["event"] in known, line
        levels, fields = known[line["event"]]
        assert line["level"] in levels, line
        assert line["fields"].keys() <= fields, line
        for name, value in line["fields"].items():
            assert isinstance(value, types[name]), (name, line)
