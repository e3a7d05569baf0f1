#!/usr/bin/env python3
"""Node supervisors killed again and again: steps that training loses, and what is left when the launcher goes as well.

Only ours: torchrun's agent is the parent of its workers, which end with it or are left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import harness
from harness import Summary
from launchers import Launcher, Run, alive, children, control_group, processes_of, until

# Counts steps, and daemonizes a child that is deaf and has a session of its own.
WORKER = """#!/bin/sh
(setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' &) &
n=0
while [ ! -e "$1/enough" ]; do n=$((n+1)); echo $n > "$1/step-$RANK"; sleep 0.2; done
"""
# What workers daemonize when a launcher is to be buried. All of it works in the run's directory, by which it is found:
# 1. deaf, in a session of its own; 2. the same without any environment; 3. one that forks its successor and ends, all the time.
NASTY = """#!/bin/sh
cd "$1"
deaf='trap "" TERM HUP; echo $$ >> nasty; while :; do sleep 1; done'
(setsid sh -c "$deaf" &) &
(setsid env -i PATH=/usr/bin:/bin sh -c "$deaf" &) &
(setsid env -i PATH=/usr/bin:/bin sh -c 'trap "" TERM HUP; echo $$ >> nasty; exec ./relay.sh' &) &
while :; do sleep 1; done
"""
RELAY = """#!/bin/sh
sleep 0.01
"$0" &
"""
PROCS = 2
NASTY_ONES = 3 * PROCS
SCANS = 3  # a look at all processes may miss one that forks
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


def job(launcher: Launcher, directory: Path, worker: str = WORKER, **how: object) -> Run:
    for name, text in (("worker.sh", worker), ("relay.sh", RELAY)):
        script = directory / name
        script.write_text(text)
        script.chmod(0o755)
    command = [str(directory / "worker.sh"), str(directory)]
    return Run(launcher, command, directory, procs=PROCS, python=False, **how)


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


def left_of(run: Run) -> list[int]:
    return sorted({pid for _ in range(SCANS) for pid in processes_of(run.tag, run.directory)})


def end_all(run: Run) -> None:
    """Where there are no control groups this may take some rounds."""
    while left := left_of(run):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def buried(run: Run) -> tuple[float, int, int]:
    """Milliseconds from the kill of launcher and supervisor until nothing is left; else what was left after 2 s: processes, groups."""
    nasty = run.directory / "nasty"
    until(lambda: nasty.exists() and len(nasty.read_text().split()) == NASTY_ONES, 30, "daemons")
    own = run.launchers[0].pid
    group = control_group(workers_of(run)[0])
    grouped = group is not None and group != control_group(own)
    victims = [own, run.supervisor()]
    began = time.monotonic()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        until(lambda: not processes_of(run.tag, run.directory), 2, "no process is left")
    took = (time.monotonic() - began) * 1e3
    left, groups = len(left_of(run)), int(grouped and group.exists())
    end_all(run)
    return took, left, groups


def burials(launcher: Launcher, rounds: int) -> tuple[list[float], dict[str, int]]:
    """A job each, with nasty daemons. How long they took, and what all of them left."""
    times, left = [], {"processes": 0, "control groups": 0}
    shared = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory() as temporary:
        for _ in range(rounds):
            environment = {"TMPDIR": temporary}
            with (
                tempfile.TemporaryDirectory() as name,
                job(launcher, Path(name), NASTY, environment=environment) as run,
            ):
                took, processes, groups = buried(run)
            times.append(took)
            left["processes"] += processes
            left["control groups"] += groups
        # Empty, and one for each user: where launchers note that they live.
        records = Path(temporary, f"troupe-{os.geteuid()}")
        with contextlib.suppress(FileNotFoundError):
            records.rmdir()
        left["temporary files"] = len(os.listdir(temporary))
    left["shared memory"] = len(set(os.listdir("/dev/shm")) - shared)
    return times, left


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--burials", type=int, help="launchers to bury; default: as many as rounds")


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], rounds=50, declare=declare)
    to_bury = chosen.rounds if chosen.burials is None else chosen.burials
    rows, data = [], {}
    for launcher in (one for one in chosen.launchers if not one.is_torchrun):
        harness.progress(f"{chosen.rounds} supervisors")
        adopted, lost = supervisor_kills(launcher, chosen.rounds)
        harness.progress(f"{to_bury} launchers")
        took, left = burials(launcher, to_bury)
        cells = {"adopted_ms": adopted, "buried_ms": took}
        summaries = {name: Summary.of(times) for name, times in cells.items() if times}
        data[launcher.name] = {k: vars(v) for k, v in summaries.items()}
        data[launcher.name] |= {"workers_lost": lost, "left_over": left}
        shown = [str(summaries.get(name, "–")) for name in cells]
        rows.append([launcher.name, *shown, str(lost), "/".join(map(str, left.values()))])
    harness.report(
        "chaos",
        f"SIGKILL, {chosen.rounds} supervisors and {to_bury} launchers: median (p10 – p90), ms",
        ["", "kill → workers adopted", "both killed → nothing left", "workers lost", "left over"],
        rows,
        data,
        [
            f"{JOBS} jobs take turns: a supervisor that crashed within 5 s of its start, the second in a row, is waited for.",
            f"Left over: {' / '.join(left)}, of {NASTY_ONES} daemons for each launcher; the slowest took {max(took, default=0):.0f} ms.",
        ],
    )


if __name__ == "__main__":
    main()
