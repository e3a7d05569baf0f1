#!/usr/bin/env python3
"""From the moment a rank begins to hang to the line that names it, and to the picture of all stacks.

Four ranks of gloo, a job for each hang (tests/e2e/hanging.py). Only ours: torchrun says nothing until gloo's timeout of 30 min.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import harness
from harness import Figure, Summary, short
from launchers import ROOT, Launcher, Run, until
from machines import CARD, Network, network

SCRIPT = ROOT / "tests/e2e/hanging.py"
STEPS = 120  # before a hang begins: what is usual for each rank is known
WARM_UP = 5
WITHIN = 180.0
PORT = 29400
TOKEN = "0123456789abcdef0123456789abcdef"


class Kind(NamedTuple):
    """Of hangs."""

    hang: str = ""  # that the script is asked for; empty: a link is cut
    where: str = "step"  # which of its processes takes the order
    work: float = 0.02  # seconds of a step
    program: str = "ddp"
    steps: int = STEPS  # made before it begins
    bound: float = 2.0  # seconds within which it is to be named


KINDS = {
    "SIGSTOP": Kind("stop"),
    "deadlock in Python": Kind("deadlock"),
    "C code with Python's lock": Kind("interpreter"),
    "busy loop": Kind("spin"),
    "another order of collectives": Kind("order"),
    "data loader that waits": Kind("loader", "loader"),
    "full disk under the loader": Kind("disk", "loader"),
    "link that is cut": Kind(),
    "twice as slow": Kind("slow", work=0.05),
    "SIGSTOP in the first step": Kind("stop", steps=0),
    "SIGSTOP in a loop of all_reduce": Kind("stop", program="all_reduce"),
    "deadlock in a loop of all_reduce": Kind("deadlock", program="all_reduce"),
    "deadlock in updates by hand": Kind("deadlock", program="by_hand"),
    "deadlock under another optimizer": Kind("deadlock", program="engine"),
    "deadlock in inference": Kind("deadlock", program="inference"),
    "deadlock soon after the start": Kind("deadlock", program="all_reduce", steps=70, bound=4.0),
    "another order, without steps": Kind("order", program="all_reduce"),
    "deadlock beside programs": Kind("programs"),
    "deadlock beside an uploader": Kind("upload"),
    "link that is cut under messages": Kind(program="messages"),
}


class Hang:
    """Seconds from its beginning, and the longest usual step."""

    def __init__(self, place: Path, run: Run, began: float) -> None:
        steps = [float(t) for t in re.findall(r"^step \d+ at (\S+)$", run.out(), re.M)]
        took = [b - a for a, b in zip(steps, steps[1:]) if b < began][WARM_UP:]
        self.p99 = statistics.quantiles(took, n=100, method="inclusive")[-1] if len(took) > 1 else 0.0

        def event(*names: str) -> dict | None:
            """The first of these; the last line may be half written."""
            for line in (place / "log.json").read_text().splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    if (told := json.loads(line))["event"] in names:
                        return told
            return None

        def seconds_to(*names: str) -> float:
            told = until(lambda: event(*names), WITHIN, f"{names}\n{run.err()}")
            return datetime.datetime.fromisoformat(told["time"]).timestamp() - began

        self.named = seconds_to("hang", "rank_slow")
        self.sentence = event("hang", "rank_slow")["text"]
        self.drawn = None if event("rank_slow") else seconds_to("stacks_written", "stacks_not_written") - self.named
        self.missing = event("stacks_not_written") is not None


@contextlib.contextmanager
def trained(place: Path, launcher: Launcher, kind: Kind, machines: Network | None) -> Iterator[Run]:
    """A job that has made its first steps, on one machine or on two."""

    class Inside(Launcher):
        def command(self, command: list[str], **how: object) -> list[str]:
            where = ["--nnodes=2", f"--rdzv-endpoint={machines.address(0)}:{PORT}", f"--node-rank={how['node']}"]
            log = [f"--json-log={place}/{'other-' if how['node'] else ''}log.json"]
            return machines.command(how["node"], [self.program, "--nproc-per-node=2", *where, *log, *command])

    worker = [str(SCRIPT), str(place), "1000000", str(kind.work), kind.program]
    how = {"procs": 4, "options": [f"--json-log={place}/log.json"]}
    if machines:
        launcher = Inside(launcher.name, launcher.program)
        how = {"nodes": 2, "port": PORT, "environment": {"GLOO_SOCKET_IFNAME": CARD, "TROUPE_TOKEN": TOKEN}}
    if kind.steps == 0:
        order(place, kind)
    with Run(launcher, worker, place, **how) as run:
        if kind.steps:
            until(lambda: f"step {kind.steps} at" in run.out(), WITHIN, f"steps\n{run.err()}")
        yield run


def order(place: Path, kind: Kind) -> None:
    (place / "new").write_text(kind.hang)
    (place / "new").rename(place / kind.where)


def begin(place: Path, run: Run, kind: Kind) -> float:
    if kind.steps:
        order(place, kind)
    begun = re.compile(rf"hang {kind.hang} at (\S+) ")
    return float(until(lambda: begun.search(run.out()), WITHIN, "a hang")[1])


def cut(machines: Network) -> float:
    """All but the link to the master."""
    began = time.time()
    for rule in (f"--sport {PORT} -j ACCEPT", f"--dport {PORT} -j ACCEPT", "-j DROP"):
        line = f"iptables -A INPUT -i {CARD} -p tcp {rule}".split()
        subprocess.run(machines.command(1, line), check=True)
    return began


def once(name: str, launcher: Launcher) -> Hang:
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as ends:
        place = Path(directory)
        machines = None if kind.hang else ends.enter_context(network(2, place / "hosts"))
        if kind.hang == "disk":
            (place / "full").mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place / "full")], check=True)
            ends.callback(subprocess.run, ["umount", "-l", str(place / "full")], check=True)
        run = ends.enter_context(trained(place, launcher, kind, machines))
        return Hang(place, run, cut(machines) if machines else begin(place, run, kind))


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        rounds=10,
        declare=lambda parser: parser.add_argument("--kind", action="append", choices=KINDS, help="only this one"),
    )
    launcher = chosen.launchers[0]
    found: dict[str, list[Hang]] = {name: [] for name in chosen.kind or KINDS}
    for turn in range(chosen.rounds):
        for name in found:
            harness.progress(f"round {turn + 1} of {chosen.rounds}: {name}")
            found[name].append(once(name, launcher))
            harness.progress(f"  {found[name][-1].named:.2f} s: {found[name][-1].sentence}")
    rows, results, figures = [], {}, []
    for name, hangs in found.items():
        named = Summary.of([h.named for h in hangs])
        drawn = Summary.of([h.drawn for h in hangs]) if hangs[0].drawn is not None else None
        goal = KINDS[name].bound
        bound = max(goal, 3 * statistics.median(h.p99 for h in hangs))
        late = sum(h.named > max(goal, 3 * h.p99) for h in hangs)
        missing = sum(h.missing for h in hangs)
        rows.append([name, str(named), f"{short(bound)}", f"{late} of {len(hangs)}", str(drawn or "–"), str(missing)])
        results |= {f"{name}: named": named, f"{name}: bound": bound, f"{name}: over the bound": late}
        if drawn:
            results |= {f"{name}: drawn": drawn, f"{name}: not drawn": missing}
        figures.append(Figure(f"{name}: until the rank is named", "s", named, limit_name="goal", limit=bound))
    harness.report(
        "hangs",
        f"From the beginning of a hang: median (p10 – p90) of {chosen.rounds} jobs each",
        ["", "named, s", "bound, s", "over it", "then drawn, s", "not drawn"],
        rows,
        results,
        ["bound: 2 s (4 s where nothing is usual yet), or three times the p99 of a step where that is longer; stacks: 1 s after the line."],
        figures,
    )


if __name__ == "__main__":
    main()
