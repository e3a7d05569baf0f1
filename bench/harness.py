"""What the benchmarks share: statistics, facts about the machine, tables, JSON files.

A figure here means nothing by itself, it depends on the machine and on what else runs there. So peers
are measured in turn within the same run, and what is quoted is the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from launchers import PYTHON, ROOT, Launcher, actor_launcher, launcher_named

RESULTS = ROOT / "build" / "bench"


@dataclass(frozen=True)
class Summary:
    """Median and spread of one thing measured repeatedly."""

    runs: int
    median: float
    p10: float
    p90: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        if len(samples) == 1:
            return cls(1, samples[0], samples[0], samples[0])
        tenths = statistics.quantiles(samples, n=10, method="inclusive")
        return cls(len(samples), statistics.median(samples), tenths[0], tenths[-1])

    def __str__(self) -> str:
        return f"{short(self.median)}  ({short(self.p10)} – {short(self.p90)})"


@dataclass(frozen=True)
class Figure:
    """One line of the page that `./x bench report` writes; the name stands alone, without the bench's own table."""

    name: str
    unit: str
    ours: Summary
    peer_name: str = ""
    peer: Summary | None = None
    limit_name: str = ""  # what the machine allows, whatever the program
    limit: float | None = None
    more_is_better: bool = False


def short(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - int(f"{abs(value):e}".split("e")[1]))
    return f"{value:,.{digits}f}"


def ratio(ours: Summary | None, peer: Summary | None) -> str:
    if ours is None or peer is None or ours.median == 0:
        return "–"
    return f"{short(peer.median / ours.median)} ×"


def torch_version() -> str:
    script = "import importlib.metadata as m; print(m.version('torch'))"
    return subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout.strip()


def measured() -> str:
    """Version and commit of the program as it tells them; a + says that the sources had changed since that commit."""
    told = subprocess.run([actor_launcher().program, "--version"], capture_output=True, text=True)
    return told.stdout.strip().removeprefix("troupe ")


def machine() -> dict[str, str]:
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return {
        "cpu": f"{len(os.sched_getaffinity(0))} × {cpu}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "torch": torch_version(),
        "load at start": f"{os.getloadavg()[0]:.2f}",
        "niceness": str(os.nice(0)),
    }


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as needed; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    lines = []
    for row in [headers, ["-" * w for w in widths], *rows]:
        first, *others = (cell for cell in row)
        cells = [first.ljust(widths[0])] + [c.rjust(w) for c, w in zip(others, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def report(
    name: str,
    title: str,
    headers,
    rows,
    data: dict,
    notes: Sequence[str] = (),
    figures: Sequence[Figure] = (),
) -> None:
    """Prints the table with the machine's facts and keeps the figures as JSON; report.py makes the page of them."""
    facts = machine()
    print(f"\n{title}\n\n{table(headers, rows)}\n")
    for note in notes:
        print(note)
    print("machine: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = {
        "bench": name,
        "time": time.time(),
        "measured": measured(),
        "command": shlex.join(["./x", "bench", name, *sys.argv[1:]]),
        "machine": facts,
        "figures": [asdict(figure) for figure in figures],
        "results": {k: asdict(v) if isinstance(v, Summary) else v for k, v in data.items()},
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


def options(
    description: str,
    rounds: int,
    declare: Callable[[argparse.ArgumentParser], object] = lambda _: None,
) -> argparse.Namespace:
    """The options every benchmark has; `launchers` are those to compare, ours first."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default {rounds}")
    parser.add_argument(
        "--launcher",
        action="append",
        metavar="NAME",
        help="actor-launcher, torchrun or the path of a build of ours; default: the first two",
    )
    declare(parser)
    chosen = parser.parse_args()
    chosen.launchers = [
        launcher_named(n) for n in chosen.launcher or ["actor-launcher", "torchrun"]
    ]
    for launcher in chosen.launchers:
        if not os.access(launcher.program, os.X_OK):
            sys.exit(f"{launcher.program} does not exist; build it first")
    return chosen


def peer_of(launchers: Sequence[Launcher]) -> tuple[str | None, str | None]:
    """Names of ours, the first build among those measured, and of its peer: torchrun or an earlier build."""
    ours = next((one.name for one in launchers if not one.is_torchrun), None)
    return ours, next((one.name for one in launchers if one.name != ours), None)


Shown = tuple[str, str, str, bool]  # see `against_limit`


def against_limit(
    seconds: dict[str, list[float]], shown: Sequence[Shown] = (), of: str = ""
) -> tuple[dict[str, Summary], list[list[str]], list[Figure]]:
    """What took how many seconds, of which "limit" is what the machine allows: in ms, and how often the limit. Results, rows and
    the page's figures; `of` begins the names of the first two.

    `shown` are the page's figures: a name, which row is ours, which the peer's, and whether the limit is one for it.
    """
    summaries = {what: Summary.of([1e3 * s for s in all]) for what, all in seconds.items()}
    rows = [[of + what, str(one), ratio(summaries["limit"], one)] for what, one in summaries.items()]
    figures = [
        Figure(
            text, "ms", summaries[ours], peer, summaries.get(peer),
            *(("a plain copy", summaries["limit"].median) if limited else ()),
        )
        for text, ours, peer, limited in shown
        if ours in summaries
    ]  # fmt: skip
    return {of + what: one for what, one in summaries.items()}, rows, figures


def report_against_limit(
    name: str,
    title: str,
    seconds: dict[str, list[float]],
    limit: str,
    shown: Sequence[Shown] = (),
) -> None:
    """As `against_limit`, of one measurement."""
    summaries, rows, figures = against_limit(seconds, shown)
    report(name, title, ["", "ms", "× limit"], rows, dict(summaries), [f"limit: {limit}"], figures)


def figures_without_peer(found: dict[str, Summary], begin: str = "") -> list[Figure]:
    """Of rows that are named `what [unit]`; those without a unit are left to the bench's own table."""
    named = {what: what.rstrip("]").partition(" [") for what in found}
    return [Figure(begin + name, unit, found[what]) for what, (name, _, unit) in named.items() if unit]


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
