#!/usr/bin/env python3
"""Node supervisors killed again and again: steps that training loses, and what is left when the launcher goes as well.

Only ours: torchrun's agent is the parent of its workers, which end with it or are left alone.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import harness
from harness import Summary
from launchers import Launcher, Run, alive, children, until

# Counts steps of a millisecond or so, and daemonizes a child that is deaf and has a session of its own.
WORKER = """#!/bin/sh
(setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' &) &
n=0
while [ ! -e "$1/enough" ]; do n=$((n+1)); echo $n > "$1/step-$RANK"; sleep 0.001; done
"""
PROCS = 2


def step(directory: Path, rank: int) -> int:
    try:
        return int((directory / f"step-{rank}").read_text() or 0)
    except FileNotFoundError:
        return 0


def trains_on(directory: Path) -> None:
    before = [step(directory, rank) for rank in range(PROCS)]
    until(lambda: all(step(directory, r) > before[r] for r in range(PROCS)), 20, "a step")


def job(launcher: Launcher, directory: Path) -> Run:
    script = directory / "worker.sh"
    script.write_text(WORKER)
    script.chmod(0o755)
    return Run(launcher, [str(script), str(directory)], directory, procs=PROCS, python=False)


def supervisor_kills(launcher: Launcher, rounds: int) -> tuple[list[float], int]:
    """One job. From each kill until the next supervisor has adopted its workers; restarts of workers."""
    times = []
    with tempfile.TemporaryDirectory() as name, job(launcher, Path(name)) as run:
        directory = Path(name)
        until(lambda: all(step(directory, r) for r in range(PROCS)), 30, "training")
        workers = {c for c, name in children(run.launchers[0].pid).items() if name == "worker.sh"}
        for turn in range(rounds):
            victim = run.supervisor()
            began = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            until(
                lambda: run.err().count("was restarted; generation 1 goes on") == turn + 1,
                20,
                "adoption",
            )
            times.append((time.monotonic() - began) * 1e3)
            trains_on(directory)
        lost = sum(not alive(pid) for pid in workers)
        (directory / "enough").touch()
        if run.wait(30) != [0] or run.leftovers():
            raise RuntimeError(f"the job did not end well:\n{run.err()}")
    return times, lost


def burials(launcher: Launcher, rounds: int) -> tuple[list[float], int]:
    """A job each. From the kill of launcher and supervisor until nothing is left; what was left after 2 s."""
    times, left = [], 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name, job(launcher, Path(name)) as run:
            until(lambda: all(step(Path(name), r) for r in range(PROCS)), 30, "training")
            victims = [run.launchers[0].pid, run.supervisor()]
            began = time.monotonic()
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            try:
                until(lambda: run.leftovers() == [], 2, "nothing is left")
            except TimeoutError:
                left += len(run.leftovers())
            times.append((time.monotonic() - began) * 1e3)
    return times, left


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], rounds=50)
    rows, data = [], {}
    for launcher in (one for one in chosen.launchers if not one.is_torchrun):
        harness.progress(f"{chosen.rounds} supervisors of one job")
        adopted, lost = supervisor_kills(launcher, chosen.rounds)
        harness.progress(f"{chosen.rounds} jobs")
        buried, left = burials(launcher, chosen.rounds)
        summaries = {"adopted_ms": Summary.of(adopted), "buried_ms": Summary.of(buried)}
        data[launcher.name] = {k: vars(v) for k, v in summaries.items()}
        data[launcher.name] |= {"workers_lost": lost, "left_over": left}
        rows.append([launcher.name, *map(str, summaries.values()), str(lost), str(left)])
    harness.report(
        "chaos",
        f"SIGKILL, {chosen.rounds} times each: median (p10 – p90), ms",
        ["", "kill → workers adopted", "both killed → nothing left", "workers lost", "left over"],
        rows,
        data,
        ["From the second crash within 10 s on the keeper waits before it restarts: 0.1 to 1 s."],
    )


if __name__ == "__main__":
    main()
