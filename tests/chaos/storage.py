#!/usr/bin/env python3
"""Do loads take the newest complete step? Processes, machines, networks and disks fail while three nodes save.

Three machines, made of network namespaces, train with shards of their own and save to memory at each step and to disk at
each tenth, with a disk for each machine or one for all, and with copies, parities or neither in memory of other nodes. See
storage_faults.py for what is done to them, storage_judge.py for what must hold, storage_state.py for what is trained. Only
ours; nothing is timed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / name) for name in ("bench", "python")]
import harness
from disks import Disk, Troubles
from launchers import ROOT, processes_tagged
from machines import network
from storage_faults import plan
from storage_job import KEEP, MASTER, NODES, Job, started
from storage_judge import Judge
from storage_state import Reference

MODES = ("own", "shared", "spare")
COPIES = {"none": ({}, 0), "replica": ({"replica_count": 2}, 1), "parity": ({"parity": 1, "parity_group": 3}, 1)}
GOES_ON_WITHIN = 90
ENDS_WITHIN = 180
LAST_STEPS = 40
OWN_MOUNTS = "CHAOS_OWN_MOUNTS"


def own_mounts() -> None:
    """A mount namespace for all of this: another's cannot keep a disk in use, and no mount outlives it."""
    if os.environ.get(OWN_MOUNTS) != str(os.getpid()):
        os.environ[OWN_MOUNTS] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


class Failed(Exception):
    pass


def disks(stack: contextlib.ExitStack, directory: Path, mode: str, mib: int) -> dict[int, Disk]:
    if mode != "own":
        return dict.fromkeys(NODES, stack.enter_context(Disk(directory / "disk", mib * len(NODES))))
    return {n: stack.enter_context(Disk(directory / f"disk-{n}", mib)) for n in NODES}


def disturb(job: Job, minutes: float, chance: random.Random, only: str, done: Counter[str]) -> None:
    began = time.monotonic()
    for number, fault in enumerate(plan(chance, only, job.shared), 1):
        if time.monotonic() > began + 60 * minutes:
            return
        time.sleep(chance.uniform(0.5, 5))
        at = time.monotonic()
        step = job.judge.newest_event[1]
        told = fault.happens(job, chance)
        done[fault.kind] += 1
        harness.progress(f"{at - began:6.1f} {number:4}  step {step:6}  {fault.kind}: {told}")
        if not job.goes_on(time.monotonic(), GOES_ON_WITHIN):
            job.judge.violated(f"no step was made for {GOES_ON_WITHIN} s after fault {number}, {fault.kind}")
            raise Failed
        if chance.random() < 0.7 and not job.saves(time.monotonic(), GOES_ON_WITHIN):
            job.judge.violated(f"no step was complete for {GOES_ON_WITHIN} s after fault {number}, {fault.kind}")
            raise Failed
        time.sleep(fault.apart)


def finish(job: Job) -> None:
    """Lets training end and looks at what it leaves."""
    judge, end = job.judge, time.monotonic() + ENDS_WITHIN
    judge.read()
    target = judge.newest_event[1] + LAST_STEPS
    (judge.told / "enough.part").write_text(str(target))
    (judge.told / "enough.part").rename(judge.told / "enough")
    while job.wanted and time.monotonic() < end:
        judge.read()
        time.sleep(0.1)
    judge.read(0)
    if job.wanted:
        judge.violated(f"{sorted(job.wanted)} did not end within {ENDS_WITHIN} s after all faults")
        return
    if left := list(processes_tagged(job.tag)):
        judge.violated(f"left over: {left}")
    steps = {event["step"] for event in judge.finals.values()}
    if len(judge.finals) != judge.reference.world or len(steps) != 1 or min(steps) < target:
        judge.violated(f"of {judge.reference.world} ranks ended: {judge.finals}, at least step {target}")
        return
    for disk in dict.fromkeys(job.disks.values()):
        check_disk(judge, disk.place / "checkpoints", *steps)


def check_disk(judge: Judge, place: Path, last: int) -> None:
    from troupe.checkpoint import complete_steps

    there = complete_steps(str(place))
    folders = sorted(int(path.name) for path in place.iterdir() if path.name.isdecimal())
    if not there or there[0] != last:
        judge.violated(f"{place}: the newest complete step is not {last}: {there}")
    if len(there) > KEEP or len(folders) > KEEP:
        judge.violated(f"{place}: {KEEP} steps are to be kept; complete {there}, directories {folders}")


def run(mode: str, copies: str, minutes: float, seed: int, chosen: argparse.Namespace) -> bool:
    directory = ROOT / "build" / "chaos" / f"storage-{mode}-{copies}-{seed}"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "told").mkdir(parents=True)
    redundancy, spared = COPIES[copies]
    words, at_once = chosen.mib << 18, len(NODES) - (mode == "spare")
    chance = random.Random(f"{seed} {mode} {copies}")
    reference = Reference(at_once * chosen.procs, words)
    judge = Judge(directory / "told", reference, spared, harness.progress)
    done: Counter[str] = Counter()
    harness.progress(f"disks: {mode}; copies: {copies}; seed {seed}; {minutes:g} minutes; logs in {directory}")
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(1 + len(NODES), directory / "hosts"))
        size = chosen.disk_mib or max(64, 24 * chosen.mib * chosen.procs)
        by_machine = disks(stack, directory, mode, size)
        troubles = Troubles(directory)
        job = Job(net, directory, by_machine, troubles, judge, chosen.procs, words, redundancy, at_once)
        with started(job):
            try:
                if not job.goes_on(time.monotonic(), GOES_ON_WITHIN):
                    judge.violated("training did not begin")
                    raise Failed
                disturb(job, minutes, chance, chosen.only, done)
                finish(job)
            except Failed:
                harness.progress(job.logs())
    return report(mode, copies, minutes, seed, chosen, job, done)


def report(mode: str, copies: str, minutes: float, seed: int, chosen: argparse.Namespace, job: Job, done: Counter) -> bool:
    judge = job.judge
    counts, passed = judge.counts, not judge.violations
    faults = ", ".join(f"{kind} {times}" for kind, times in done.most_common())
    sources = ", ".join(f"{source} {times}" for source, times in judge.sources.most_common())
    for text in judge.violations:
        print(f"VIOLATION: {text}")
    for text, times in job.unasked.items():
        harness.progress(f"launchers that ended by themselves and were started again: {text}, {times} times")
    last = max((event["step"] for event in judge.finals.values()), default=judge.newest_event[1])
    print(
        f"{'PASS' if passed else 'FAIL'}  disks {mode}, copies {copies}: {done.total()} faults ({faults}); "
        f"{last} steps, {counts['loads']} loads ({sources}), {counts['complete steps']} steps called complete, "
        f"{counts['unsaved']} saves refused, {counts['unknown']} not known or not kept in time; "
        f"violations {len(judge.violations)}",
        flush=True,
    )
    again = f"./x chaos storage --minutes {minutes:g} --seed {seed} --mode {mode} --copies {copies}"
    shape = f" --procs {chosen.procs} --mib {chosen.mib}" + (f" --only '{chosen.only}'" if chosen.only else "")
    shape += f" --disk-mib {chosen.disk_mib}" if chosen.disk_mib else ""
    print(f"      again: {again}{shape}", flush=True)
    if passed and not chosen.keep:
        shutil.rmtree(job.directory)
    elif not passed:
        print(f"      logs, and what each rank said: {job.directory}", flush=True)
    return passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="of faults, for all runs; default 30")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--mode", choices=MODES, help="a disk for each node; one for all; or that, and one of the three nodes stands by; default: each in turn")
    parser.add_argument("--copies", choices=COPIES, help="in memory of other nodes; default: each in turn")
    parser.add_argument("--procs", type=int, default=1, help="workers of each node; default 1")
    parser.add_argument("--mib", type=int, default=3, help="of each rank's state; default 3")
    parser.add_argument("--disk-mib", type=int, help="of disk for each node; default: for 24 states")
    parser.add_argument("--only", default="", metavar="WORDS", help="faults that are named so")
    parser.add_argument("--keep", action="store_true", help="logs of runs that passed, too")
    chosen = parser.parse_args()
    if os.geteuid():
        sys.exit("root is needed, for network namespaces and mounts")
    own_mounts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is taken down then
    modes = [chosen.mode] if chosen.mode else MODES
    copies = [chosen.copies] if chosen.copies else list(COPIES)
    runs = list(itertools.product(modes, copies))
    try:
        passed = [run(*one, chosen.minutes / len(runs), chosen.seed, chosen) for one in runs]
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
