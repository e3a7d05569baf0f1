#!/usr/bin/env python3
"""Writes docs/performance.md and its chart from bench/results, which has one file for each bench.

--take copies the newest results of this checkout (build/bench) there first; --check writes nothing and fails where
page or chart are not what the results give.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))

from chart import Bar, chart, times
from harness import RESULTS, ROOT, short
from pages import with_part

KEPT = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "pictures" / "performance.svg"
PART = "figures"
NOT_BENCHES = {"report"}
# A page about one machine says what it is; what changes from run to run stands beside each bench.
FIRST = ("launch", "restart", "elastic", "recover", "footprint", "tee", "store")  # what most people ask for
RUN_FACTS = ("load at start", "niceness")


def benches() -> list[str]:
    """The scripts that write results."""
    found = (path for path in (ROOT / "bench").glob("*.py") if '__name__ == "__main__"' in path.read_text())
    return sorted({path.stem for path in found} - NOT_BENCHES)


def rounded(value):
    """Four significant digits: enough for a page, and a file that people can read."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def take(names: list[str]) -> None:
    """Of a run of this checkout what the page needs."""
    for name in names or benches():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            if names:
                sys.exit(f"report: there is no {path}; `./x bench {name}` writes it")
            continue
        run = json.loads(path.read_text())
        if not run.get("figures"):
            sys.exit(f"report: {path} has no figures for the page; run `./x bench {name}` again")
        del run["results"]
        day = datetime.fromtimestamp(run.pop("time"), timezone.utc).date().isoformat()
        kept = {"bench": run.pop("bench"), "day": day} | run | {"figures": rounded(run["figures"])}
        (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def better(figure: dict) -> float | None:
    """How many times better ours is than the peer."""
    return ratio_to_peer(figure, figure["ours"]["median"])


def ratio_to_peer(figure: dict, value: float | None) -> float | None:
    peer = figure["peer"] and figure["peer"]["median"]
    if not peer or not value:
        return None
    return value / peer if figure["more_is_better"] else peer / value


def amount(value: str, unit: str) -> str:
    return f"{value}{' ' if unit else ''}{unit}"


def spread(summary: dict | None, unit: str) -> str:
    if summary is None:
        return "–"
    return f"{amount(short(summary['median']), unit)} ({short(summary['p10'])}–{short(summary['p90'])})"


def row(figure: dict, command: str) -> str:
    ratio = better(figure)
    cells = [
        figure["name"],
        spread(figure["ours"], figure["unit"]),
        f"{figure['peer_name']}: {spread(figure['peer'], figure['unit'])}" if figure["peer"] else "–",
        times(ratio) if ratio else "–",
        f"{figure['limit_name']}: {amount(short(figure['limit']), figure['unit'])}" if figure["limit"] else "–",
        f"`{command}`",
    ]
    return f"| {' | '.join(cells)} |"


def tables(results: list[dict]) -> str:
    lines = ["| what | ours (p10–p90) | peer (p10–p90) | better | limit | command |", "|---|---|---|---|---|---|"]
    lines += [row(figure, run["command"]) for run in results for figure in run["figures"]]
    lines += ["", "| bench | measured on | program | samples | machine |", "|---|---|---|---|---|"]
    for run in results:
        rounds = max(figure["ours"]["runs"] for figure in run["figures"])
        facts = ", ".join(
            (f"{key} " if key in (*RUN_FACTS, "torch", "python") else "") + value
            for key, value in run["machine"].items()
        )
        lines.append(f"| `{run['bench']}` | {run['day']} | {run['measured']} | {rounds} | {facts} |")
    missing = sorted(set(benches()) - {run["bench"] for run in results})
    if missing:
        lines += ["", "Not measured on this state: " + ", ".join(f"`./x bench {name}`" for name in missing) + "."]
    return "\n".join(lines)


def bars(results: list[dict]) -> list[Bar]:
    """What has a peer, the greatest ratio first."""
    found = []
    for run in results:
        for figure in run["figures"]:
            if ratio := better(figure):
                ours, peer = (short(figure[who]["median"]) for who in ("ours", "peer"))
                words = f"{amount(ours, figure['unit'])}; {figure['peer_name']} {peer}"
                found.append(Bar(figure["name"], ratio, words, ratio_to_peer(figure, figure["limit"])))
    return sorted(found, key=lambda bar: -bar.ratio)


def rendered(results: list[dict], page: str) -> dict[Path, str]:
    drawn = chart(
        "How many times better than the peer, measured in turn in one run (log scale)",
        bars(results),
        "Right of each name: ours; the peer. Green line: what the machine itself allows.",
    )
    picture = "![Bars on a log scale: how many times better than its peer each figure is](pictures/performance.svg)"
    return {PAGE: with_part(page, PART, f"{picture}\n\n{tables(results)}"), CHART: drawn}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--take", nargs="*", metavar="NAME", help="all if none is named")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    if chosen.take is not None:
        take(chosen.take)
    kept = sorted(KEPT.glob("*.json"), key=lambda path: (*(path.stem != one for one in FIRST), path.stem))
    results = [json.loads(path.read_text()) for path in kept]
    wanted = rendered(results, PAGE.read_text())
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if chosen.check:
            print(f"{path.relative_to(ROOT)} is not what bench/results gives; `./x bench report` writes it")
        else:
            path.write_text(wanted[path])
            print(f"{path.relative_to(ROOT)} is written")
    return 1 if chosen.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
