#!/usr/bin/env python3
"""Real training for ten minutes under faults of all kinds, without a human.

Two of three machines train demo/train_lm.py with one worker each over gloo, the third stands by;
the master has a machine of its own and one to move to. Machines are network namespaces. The same
training runs undisturbed first: afterwards both must have the same weights, to the bit.

What this script does besides harm is what Kubernetes or Slurm does: a launcher or master that has
ended is started again after a second. Only ours: torchrun waits 30 s for each lost node and ends
with the machine of its rendezvous.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import contextlib
import itertools
import json
import math
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import harness
from harness import Summary
from launchers import PYTHON, ROOT, TAG, alive, base_environment, end_tagged, processes_tagged, until
from machines import CARD, Network, network

MASTERS = (0, 1)  # machines
NODES = (2, 3, 4)
WORLD = 2
PORT = 29400
RESTARTED_AFTER = 1.0  # by the service that watches over launchers and masters
LONG, SHORT = 4.0, 0.8  # s; beyond any lease, and within it
STARTS_WITHIN, GOES_ON_WITHIN = 120, 60


class Training:
    """What the script tells: see train_lm.py."""

    def __init__(self, directory: Path, steps: int, batch: int) -> None:
        self.directory, self.steps, self.batch = directory, steps, batch
        self.checkpoint = directory / "checkpoint.pt"
        self.told: list[dict] = []
        self.read_to = 0  # byte of progress.jsonl

    def command(self) -> list[str]:
        shape = [f"--steps={self.steps}", f"--batch={self.batch}", "--checkpoint-every=5"]
        where = f"--checkpoint-dir={self.directory}"
        return [str(ROOT / "demo" / "train_lm.py"), where, *shape, "--report-every=500"]

    def events(self) -> list[dict]:
        """All so far. Watching must not take processor time from training."""
        with contextlib.suppress(FileNotFoundError), open(self.directory / "progress.jsonl", "rb") as file:
            file.seek(self.read_to)
            whole = file.read().rpartition(b"\n")[0].splitlines(keepends=True)
            self.told += map(json.loads, whole)
            self.read_to += sum(map(len, whole)) + bool(whole)
        return self.told

    def step(self) -> int:
        """The newest, which after a restart is one that was made before."""
        return self.events()[-1]["step"] if self.events() else 0

    def step_after(self, when: float) -> dict | None:
        """The first step that was begun after that moment and had not been made before."""
        events = self.events()
        first = bisect.bisect_right(events, when, key=lambda e: e["time"])
        known = max((e["step"] for e in events[:first][-1000:]), default=0)
        # One may have been under way, and is made even if half of the ranks have gone.
        return next((e for e in events[first:] if e["event"] == "step" and e["step"] > known + 1), None)

    def worker(self, rank: int) -> int:
        return int((self.directory / f"worker-{rank}.pid").read_text())


def new_steps(events: list[dict]) -> list[float]:
    """When each step was made that had not been made before."""
    times, known = [], 0
    for event in events:
        if event["event"] == "step" and event["step"] > known:
            times.append(event["time"])
            known = event["step"]
    return times


def stalled(times: list[float]) -> Iterator[float]:
    """What gaps of more than two steps' time have beyond one, by the median of the fifty around."""
    gaps = [b - a for a, b in itertools.pairwise(times)]
    for at, gap in enumerate(gaps):
        pace = statistics.median(gaps[max(0, at - 25) : at + 25])
        if gap > 2 * pace:
            yield gap - pace


@dataclass(frozen=True)
class Figures:
    """Of one run, in seconds from the first moment that training was ready."""

    wall: float
    imports: float  # of torch, after that moment
    startups: float  # the same until it was ready again
    repeated: int  # steps
    starts: int  # after the first
    stalls: float  # beyond the pace of the steps around them, imports included

    @property
    def share(self) -> float:
        """Of the time besides imports, that in which new steps were made at the pace of the moment: the
        machine's own speed changes by a third within minutes, so that another run is no measure."""
        return self.share_besides(self.imports)

    def share_besides(self, excused: float) -> float:
        return 1 - (self.stalls - excused) / (self.wall - excused)

    @classmethod
    def of(cls, events: list[dict]) -> Figures:
        began = next(e["time"] for e in events if e["event"] == "ready")
        later = [e for e in events if e["time"] > began]
        ended = next(e["time"] for e in later if e["event"] == "finished")
        started = {e["pid"]: e["time"] for e in later if e["event"] == "started"}
        imported = {e["pid"]: e["time"] for e in later if e["event"] == "imported"}
        ready = {e["pid"]: e["time"] for e in later if e["event"] == "ready"}
        made = collections.Counter(e["step"] for e in later if e["event"] == "step")
        return cls(
            wall=ended - began,
            imports=sum(imported[pid] - when for pid, when in started.items() if pid in imported),
            startups=sum(ready[pid] - when for pid, when in started.items() if pid in ready),
            repeated=sum(made.values()) - len(made),
            starts=len(started),
            stalls=sum(stalled(new_steps([e for e in later if e["event"] == "step"]))),
        )


@dataclass
class Job:
    """The programs of one job on the machines of one network."""

    net: Network
    training: Training
    directory: Path
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)
    master_at: int = MASTERS[0]
    programs: dict[int, subprocess.Popen] = field(default_factory=dict)  # by machine
    wanted: set[int] = field(default_factory=set)  # machines that are to have one
    watched: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.token = self.directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(secrets.token_hex(16) + "\n")

    def line(self, machine: int) -> list[str]:
        bin, token = ROOT / "build/release/bin", f"--token-file={self.token}"
        if machine in MASTERS:
            where = f"--listen={self.net.address(machine)}:{PORT}"
            keep = [f"--journal={self.directory / 'journal'}", "--max-restarts=1000"]
            return [str(bin / "actor-master"), "-v", token, where, f"--nnodes={WORLD}", *keep]
        meet = [f"--nnodes={WORLD}", f"--rdzv-endpoint=master:{PORT}", "--rdzv-backend=c10d"]
        own = [f"--node-name=machine-{machine}", "--max-restarts=1000", "--shutdown-timeout=5"]
        return [str(bin / "actor-launcher"), "-v", token, *meet, *own, *self.training.command()]

    def start(self, machine: int) -> None:
        environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": CARD, TAG: self.tag}
        with open(self.directory / f"machine-{machine}.log", "ab") as log:
            self.programs[machine] = subprocess.Popen(
                self.net.command(machine, self.line(machine)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=base_environment() | environment,
                start_new_session=True,
            )
        self.wanted.add(machine)

    def watch(self) -> None:
        """Starts again what has ended badly, as Kubernetes would."""
        ended = {}
        while self.wanted:
            time.sleep(0.05)
            with self.watched:
                for machine in list(self.wanted):
                    if (code := self.programs[machine].poll()) is None:
                        continue
                    if code == 0:
                        self.wanted.discard(machine)
                    elif time.monotonic() > ended.setdefault(machine, time.monotonic()) + RESTARTED_AFTER:
                        del ended[machine]
                        self.start(machine)

    def processes(self, machine: int) -> list[int]:
        """All of that machine."""
        its = os.stat(f"/run/netns/{self.net.machines[machine]}").st_ino
        found = []
        for pid in processes_tagged(self.tag):
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino == its:
                    found.append(pid)
        return found

    def signal(self, machine: int, number: int, *, name: str = "") -> None:
        for pid in self.processes(machine):
            with contextlib.suppress(OSError):
                if name in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(pid, number)

    def trains_at(self, rank: int) -> int:
        """The machine of a rank's worker."""
        pid = self.training.worker(rank)
        return next(machine for machine in NODES if pid in self.processes(machine))

    def logs(self) -> str:
        files = sorted(self.directory.glob("machine-*.log"))
        return "\n".join(f"{f.name}:\n{f.read_text(errors='replace')[-4000:]}" for f in files)


@contextlib.contextmanager
def job(net: Network, training: Training) -> Iterator[Job]:
    training.directory.parent.mkdir()
    one = Job(net, training, training.directory.parent)
    net.name(master=one.master_at)
    keeper = threading.Thread(target=one.watch)
    try:
        for machine in (one.master_at, *NODES):
            one.start(machine)
        keeper.start()
        ready = lambda: any(e["event"] == "step" for e in one.training.events())
        until(ready, STARTS_WITHIN, "training")
        yield one
        until(lambda: not one.wanted, 60, f"every program ends well, of machines {one.wanted} too")
        if left := list(processes_tagged(one.tag)):
            raise RuntimeError(f"left over: {left}")
    except (TimeoutError, RuntimeError) as wrong:
        raise RuntimeError(f"{wrong}\n{one.logs()}") from None
    finally:
        one.wanted.clear()
        keeper.join()
        end_tagged(one.tag)
        for program in one.programs.values():
            program.wait()


# ---- Faults. Each does its harm to one job, to the machine of a random rank, and undoes it. ----


def worker_killed(one: Job, rank: int) -> None:
    os.kill(one.training.worker(rank), signal.SIGKILL)


def supervisor_killed(one: Job, rank: int) -> None:
    one.signal(one.trains_at(rank), signal.SIGKILL, name="troupe-node")


def launcher_killed(one: Job, rank: int) -> None:
    one.signal(one.trains_at(rank), signal.SIGKILL, name="actor-launcher")


def machine_killed(one: Job, rank: int) -> None:
    one.signal(one.trains_at(rank), signal.SIGKILL)


def stop(one: Job, machine: int, seconds: float) -> None:
    one.signal(machine, signal.SIGSTOP)
    time.sleep(seconds)
    one.signal(machine, signal.SIGCONT)


def cut(one: Job, machine: int, seconds: float) -> None:
    one.net.cut_off(machine)
    time.sleep(seconds)
    one.net.reconnect(machine)


def machine_pauses(one: Job, rank: int) -> None:
    stop(one, one.trains_at(rank), SHORT)


def machine_freezes(one: Job, rank: int) -> None:
    stop(one, one.trains_at(rank), LONG)


def cable_flickers(one: Job, rank: int) -> None:
    cut(one, one.trains_at(rank), SHORT)


def machine_cut_off(one: Job, rank: int) -> None:
    cut(one, one.trains_at(rank), LONG)


def unheard(one: Job, rank: int) -> None:
    machine, master = one.trains_at(rank), one.master_at
    one.net.mute(machine, master)
    time.sleep(LONG)
    one.net.unmute(machine, master)


def master_killed(one: Job, _: int) -> None:
    one.signal(one.master_at, signal.SIGKILL)


def master_moves(one: Job, _: int) -> None:
    with one.watched:
        one.wanted.discard(one.master_at)
        one.signal(one.master_at, signal.SIGKILL)
        one.master_at = MASTERS[1 - MASTERS.index(one.master_at)]
        one.net.name(master=one.master_at)
        one.start(one.master_at)


def master_freezes(one: Job, _: int) -> None:
    stop(one, one.master_at, LONG)


def master_cut_off(one: Job, _: int) -> None:
    cut(one, one.master_at, LONG)


@dataclass(frozen=True)
class Fault:
    what: str
    happens: Callable[[Job, int], None]
    times: int  # of 30


FAULTS = [
    Fault("a worker is killed", worker_killed, 4),
    Fault("a node supervisor is killed", supervisor_killed, 4),
    Fault("a launcher is killed", launcher_killed, 2),
    Fault("a machine dies: all of its processes are killed", machine_killed, 2),
    Fault(f"a machine pauses for {SHORT:g} s", machine_pauses, 2),
    Fault(f"a machine freezes for {LONG:g} s", machine_freezes, 1),
    Fault(f"a cable is out for {SHORT:g} s", cable_flickers, 2),
    Fault(f"a cable is out for {LONG:g} s", machine_cut_off, 2),
    Fault(f"the master hears nothing from a machine for {LONG:g} s", unheard, 1),
    Fault("the master is killed", master_killed, 4),
    Fault("the master is killed and moves to another machine", master_moves, 2),
    Fault(f"the master freezes for {LONG:g} s", master_freezes, 2),
    Fault(f"the master is cut off for {LONG:g} s", master_cut_off, 2),
]


def plan(count: int, chance: random.Random, only: str) -> list[Fault]:
    """In a random order; of thirty each kind is there as often as it says."""
    kinds = [fault for fault in FAULTS if only in fault.what for _ in range(fault.times)]
    many: list[Fault] = []
    while len(many) < count:
        many += chance.sample(kinds, len(kinds))
    return many[:count]


# ---- Both runs ----


def undisturbed(net: Network, training: Training) -> Figures:
    with job(net, training) as one:
        finish(one, 4 * 3600)
        return Figures.of(one.training.events())


def wait(condition: Callable[[], object], within: float, what: str) -> None:
    """Like `until`, for what need not be seen at once: training has all processors."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(0.1)


def finish(one: Job, within: float) -> None:
    ended = lambda: any(e["event"] == "finished" for e in one.training.events()[-1:])
    wait(ended, within, "the end of training")


@dataclass(frozen=True)
class Stall:
    """What one fault costs: the longest wait for a step beyond all those before it."""

    seconds: float
    starts: int  # of training


def stalls(events: list[dict], faults: list[tuple[Fault, float]]) -> dict[str, list[Stall]]:
    """By fault; each lasts from its beginning to that of the next."""
    new = new_steps(events)
    found: dict[str, list[Stall]] = collections.defaultdict(list)
    ends = [began for _, began in faults[1:]] + [math.inf]
    for (fault, began), ended in zip(faults, ends, strict=True):
        waits = [b - a for a, b in itertools.pairwise(new) if began < b <= ended]
        starts = sum(e["event"] == "started" and began < e["time"] <= ended for e in events)
        found[fault.what].append(Stall(max(waits), starts))
    return found


def disturbed(
    net: Network, training: Training, faults: list[Fault], chance: random.Random
) -> tuple[Figures, dict[str, list[Stall]]]:
    happened: list[tuple[Fault, float]] = []
    with job(net, training) as one:
        for number, fault in enumerate(faults):
            due = training.steps * (number + chance.uniform(0.7, 1.3)) / (len(faults) + 1)
            wait(lambda at=due: training.step() >= at, 600, "the next fault's time")
            harness.progress(f"{number + 1:3}  step {training.step():5}  {fault.what}")
            began = time.time()
            happened.append((fault, began))
            fault.happens(one, chance.randrange(WORLD))
            what = f"training goes on after: {fault.what}"
            wait(lambda at=began: training.step_after(at), GOES_ON_WITHIN, what)
        finish(one, 600)
        events = training.events()
        return Figures.of(events), stalls(events, happened)


COMPARE = """
import sys, torch
a, b = (torch.load(path, weights_only=True) for path in sys.argv[1:])
same = all(torch.equal(a["model"][k], b["model"][k]) for k in a["model"] | b["model"])
sys.exit(0 if same and a["step"] == b["step"] else 1)
"""


def same_weights(one: Training, other: Training) -> bool:
    compare = [PYTHON, "-c", COMPARE, str(one.checkpoint), str(other.checkpoint)]
    return subprocess.run(compare).returncode == 0


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=2600, help="of training; default 2600")
    parser.add_argument("--batch", type=int, default=64, help="sequences per step; default 64")
    parser.add_argument("--faults", type=int, default=30, help="default 30")
    parser.add_argument("--seed", type=int, default=1, help="of the plan; default 1")
    parser.add_argument("--directory", type=Path, help="for logs and checkpoints; kept, must be new")
    parser.add_argument("--only", default="", metavar="WORDS", help="faults that are named so")


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], 1, declare)
    chance = random.Random(chosen.seed)
    faults = plan(chosen.faults, chance, chosen.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is taken down then
    with tempfile.TemporaryDirectory() as name:
        directory = chosen.directory or Path(name)
        directory.mkdir(exist_ok=True)
        with network(len(MASTERS) + len(NODES), directory / "hosts") as net:
            harness.progress(f"{chosen.steps} steps undisturbed")
            calm, rough = (
                Training(directory / name / "training", chosen.steps, chosen.batch)
                for name in ("calm", "rough")
            )
            quiet = undisturbed(net, calm)
            harness.progress(f"  {quiet.wall:.1f} s; now with {len(faults)} faults")
            loud, costs = disturbed(net, rough, faults, chance)
        same = same_weights(calm, rough)
    rows = [
        [
            fault.what,
            str(len(seen)),
            str(sum(stall.starts for stall in seen)),
            str(Summary.of([stall.seconds for stall in seen])),
        ]
        for fault in FAULTS
        if (seen := costs.get(fault.what))
    ]
    harness.report(
        "soak",
        f"{len(faults)} faults in {loud.wall:.0f} s, seed {chosen.seed}; the longest wait for a "
        "new step, an import of torch included, s: median (p10 – p90)",
        ["", "times", "starts", "wait"],
        rows,
        {"undisturbed": vars(quiet), "disturbed": vars(loud), "same": same, "share": loud.share},
        [
            f"weights after {chosen.steps} steps: {'identical' if same else 'DIFFERENT'} to the bit",
            f"imports of torch ({loud.imports:.1f} s in {loud.starts} starts) aside, {100 * loud.share:.1f} % "
            "of the time went into new steps at the pace of the steps around them (undisturbed: "
            f"{100 * quiet.share:.1f} %, {quiet.wall:.0f} s in all); the script's whole start-up aside, "
            f"{100 * loud.share_besides(loud.startups):.1f} %; {loud.repeated} steps made twice",
            "limit: what a machine does not compute while it is stopped, and the steps since the last checkpoint",
        ],
    )
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
