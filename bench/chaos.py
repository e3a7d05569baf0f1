#!/usr/bin/env python3
"""Node supervisors killed again and again: steps that training loses, and what is left when the launcher goes as well.

Only ours: torchrun's agent is the parent of its workers, which end with it or are left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from pathlib import Path

import harness
from harness import Summary
from launchers import Launcher, Run, alive, children, until

# Counts steps, and daemonizes a child that is deaf and has a session of its own.
WORKER = """#!/bin/sh
(setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' &) &
n=0
while [ ! -e "$1/enough" ]; do n=$((n+1)); echo $n > "$1/step-$RANK"; sleep 0.2; done
"""
PROCS = 2
JOBS = 25
RESTS = 61  # seconds, longer than a crash counts
ADOPTED = "the node supervisor was restarted;"


def workers_of(run: Run) -> list[int]:
    return [pid for pid, name in children(run.launchers[0].pid).items() if name == "worker.sh"]


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
    """From each kill until the next supervisor has adopted its workers; workers that did not survive it.

    Several jobs take turns: of one that crashes again within a minute the keeper's back-off would be measured.
    """
    times, killed = [], [-RESTS] * min(JOBS, rounds)
    with contextlib.ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in killed]
        runs = [stack.enter_context(job(launcher, place)) for place in places]
        for place in places:
            until(lambda at=place: all(step(at, r) for r in range(PROCS)), 30, "training")
        workers = [pid for run in runs for pid in workers_of(run)]
        for turn in range(rounds):
            which = turn % len(runs)
            run = runs[which]
            time.sleep(max(0.0, killed[which] + RESTS - time.monotonic()))
            adoptions = run.err().count(ADOPTED)
            victim, began = run.supervisor(), time.monotonic()
            os.kill(victim, signal.SIGKILL)
            until(lambda now=run, n=adoptions: now.err().count(ADOPTED) > n, 20, "adoption")
            times.append((time.monotonic() - began) * 1e3)
            killed[which] = began
            trains_on(places[which])
        lost = sum(not alive(pid) for pid in workers)
        for run, place in zip(runs, places, strict=True):
            (place / "enough").touch()
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
        harness.progress(f"{chosen.rounds} supervisors")
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
        [f"{JOBS} jobs take turns: from the second crash within a minute on a keeper waits, 0.1 to 1 s."],
    )


if __name__ == "__main__":
    main()
