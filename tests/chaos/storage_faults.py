"""What storage.py does to a job. Each fault ends within a bounded time and is undone by then."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storage_job import MASTER, NODES, Job


@dataclass(frozen=True)
class Fault:
    kind: str
    happens: Callable[[Job, random.Random], str]  # says what it did
    often: int
    apart: float = 0  # seconds of rest after it
    own: bool = False  # needs a disk for each machine


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


# ---- Processes and machines ----


def worker_killed(job: Job, chance: random.Random) -> str:
    machine = chance.choice(NODES)
    pids = job.workers(machine)
    kill(pids[:1])
    return f"of machine {machine}" if pids else "there was none"


def supervisor_killed(job: Job, chance: random.Random) -> str:
    machine = chance.choice(NODES)
    kill(job.named(machine, "troupe-node"))
    return f"of machine {machine}"


def launcher_killed(job: Job, chance: random.Random) -> str:
    machine = chance.choice(NODES)
    kill(job.named(machine, "actor-launcher"))
    return f"of machine {machine}"


def away(job: Job, chance: random.Random) -> float:
    """Seconds. Long enough for steps and saves without it, where another takes its place."""
    often = 0.15 if job.at_once == len(NODES) else 0.4
    return chance.uniform(30, 40) if chance.random() < often else chance.uniform(0, 4)


def machine_dies(job: Job, chance: random.Random) -> str:
    machine, seconds = chance.choice(NODES), away(job, chance)
    job.power_off(machine)
    time.sleep(seconds)
    job.power_on(machine)
    return f"machine {machine}, for {seconds:.1f} s"


def power_fails(job: Job, chance: random.Random) -> str:
    """Of one machine and its own disk."""
    machine, seconds = chance.choice(NODES), away(job, chance)
    failing(job, [machine], chance.choice((0, 0, 1.5)))
    job.disks[machine].restore()
    time.sleep(seconds)
    job.power_on(machine)
    return f"machine {machine}, for {seconds:.1f} s; what its disk had not made durable is lost"


def disk_replaced(job: Job, chance: random.Random) -> str:
    machine, seconds = chance.choice(NODES), chance.uniform(0, 3)
    job.power_off(machine)
    job.disks[machine].restore(empty=True)
    job.judge.replaced.append(time.monotonic())
    time.sleep(seconds)
    job.power_on(machine)
    return f"machine {machine} was down for {seconds:.1f} s and has an empty disk now"


def all_power_fails(job: Job, chance: random.Random) -> str:
    failing(job, list(NODES), 0)
    for disk in dict.fromkeys(job.disks.values()):
        disk.restore()
    if (found := newest_on_disks(job)) is not None:
        job.judge.found_on_disks(found)
    time.sleep(chance.uniform(0, 3))
    for machine in NODES:
        job.power_on(machine)
    return f"all machines; step {found} is complete on disk"


def failing(job: Job, machines: list[int], errors: float) -> None:
    """Disks first: nothing that a process does after that moment is kept."""
    with trouble(job):
        for disk in dict.fromkeys(job.disks[machine] for machine in machines):
            disk.cut_power()
        time.sleep(errors)
        for machine in machines:
            job.power_off(machine)


def newest_on_disks(job: Job) -> int | None:
    """The newest step that is complete on all of them."""
    from troupe.checkpoint import complete_steps

    seen = [complete_steps(str(disk.place / "checkpoints")) for disk in job.disks.values()]
    return max(set.intersection(*map(set, seen)), default=None)


def freezes(job: Job, chance: random.Random) -> str:
    machine, seconds = chance.choice(NODES), chance.choice((0.5, 2, 6, 12)) * chance.uniform(0.8, 1.2)
    what = chance.choice(("a worker", "the node supervisor", "all"))
    pids = {
        "a worker": lambda: job.workers(machine)[:1],
        "the node supervisor": lambda: job.named(machine, "troupe-node"),
        "all": lambda: job.processes(machine),
    }[what]()
    kill(pids, signal.SIGSTOP)
    time.sleep(seconds)
    kill(pids, signal.SIGCONT)
    return f"{what} of machine {machine}, for {seconds:.1f} s"


def network_cut(job: Job, chance: random.Random) -> str:
    machine, seconds = chance.choice((*NODES, MASTER)), chance.choice((1, 4, 10, 20)) * chance.uniform(0.8, 1)
    job.net.cut_off(machine)
    time.sleep(seconds)
    job.net.reconnect(machine)
    return f"of {'the master' if machine == MASTER else f'machine {machine}'}, for {seconds:.1f} s"


def master_killed(job: Job, _: random.Random) -> str:
    kill(job.named(MASTER, "actor-master"))
    return "it takes its journal up"


# ---- Disks ----


@contextlib.contextmanager
def trouble(job: Job) -> Iterator[None]:
    span = [time.monotonic(), float("inf")]
    job.judge.troubles.append(span)
    try:
        yield
    finally:
        for disk in dict.fromkeys(job.disks.values()):
            disk.heal()
        for machine in NODES:
            job.troubles.end(machine)
        span[1] = time.monotonic()


def with_trouble(begin: Callable[[Job, int, random.Random], str]) -> Callable[[Job, random.Random], str]:
    """Trouble with a disk for some seconds; now and then a process is killed meanwhile."""

    def happens(job: Job, chance: random.Random) -> str:
        machine, seconds = chance.choice(NODES), chance.uniform(1.5, 12)
        killed, when = chance.random() < 0.4, chance.uniform(0, 1)
        with trouble(job):
            told = begin(job, machine, chance)
            time.sleep(seconds * when)
            if killed:
                kill(job.workers(chance.choice(NODES))[:1])
            time.sleep(seconds * (1 - when))
        where = "the shared disk" if job.shared else f"the disk of machine {machine}"
        return f"{where}, for {seconds:.1f} s{told}{'; a worker is killed meanwhile' if killed else ''}"

    return happens


def full(job: Job, machine: int, chance: random.Random) -> str:
    left = chance.choice((0, 1 << 20, 3 << 20))
    job.disks[machine].fill(left)
    return f", but for {left >> 20} MiB"


def frozen(job: Job, machine: int, chance: random.Random) -> str:
    job.disks[machine].freeze()
    return ""


def read_only(job: Job, machine: int, chance: random.Random) -> str:
    return "" if job.disks[machine].read_only() else " (not done: it was written to all the time)"


def errors(job: Job, machine: int, chance: random.Random) -> str:
    each = chance.choice((1, 3, 10, 30))
    hit = [machine] if chance.random() < 0.5 else list(NODES)
    for one in hit:
        job.troubles.make(one, f"error {each}")
    return f", seen by machines {hit}, every {each}. operation"


def slow(job: Job, machine: int, chance: random.Random) -> str:
    each = chance.choice((20, 100, 400))
    hit = [machine] if chance.random() < 0.5 else list(NODES)
    for one in hit:
        job.troubles.make(one, f"slow {each}")
    return f", seen by machines {hit}, {each} ms more for each operation"


FAULTS = [
    Fault("worker killed", worker_killed, 4),
    Fault("node supervisor killed", supervisor_killed, 3, 5.5),  # one that lives shorter is in a crash loop
    Fault("launcher killed", launcher_killed, 2),
    Fault("machine dies", machine_dies, 3),
    Fault("power fails", power_fails, 2, own=True),
    Fault("disk replaced", disk_replaced, 2, own=True),
    Fault("all power fails", all_power_fails, 1),
    Fault("freeze", freezes, 3),
    Fault("network cut", network_cut, 3),
    Fault("master killed", master_killed, 2),
    Fault("disk full", with_trouble(full), 2),
    Fault("disk frozen", with_trouble(frozen), 2),
    Fault("disk read-only", with_trouble(read_only), 2),
    Fault("disk errors", with_trouble(errors), 2),
    Fault("disk slow", with_trouble(slow), 1),
]


def plan(chance: random.Random, only: str, shared: bool) -> Iterator[Fault]:
    """In a random order, without an end; in each round each kind is there as often as it says."""
    fits = lambda fault: only in fault.kind and not (shared and fault.own)
    kinds = [fault for fault in FAULTS if fits(fault) for _ in range(fault.often)]
    while True:
        yield from chance.sample(kinds, len(kinds))
