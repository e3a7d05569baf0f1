"""One job of storage.py: a master and three nodes, each on a machine of its own with its disk."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from disks import Disk, Troubles
from launchers import ROOT, TAG, alive, base_environment, end_tagged, processes_tagged, until
from machines import CARD, Network
from storage_judge import Judge

NODES = (0, 1, 2)  # machines
MASTER = 3
PORT = 29400
KEEP = 3
PACE = 0.03
RESTARTED_AFTER = 1.0  # by the service that watches over launchers and masters
HERE = Path(__file__).resolve().parent


@dataclass
class Job:
    net: Network
    directory: Path
    disks: dict[int, Disk]  # by machine; one for all if it is shared
    troubles: Troubles
    judge: Judge
    procs: int
    words: int
    redundancy: dict
    at_once: int  # of the nodes train; the others stand by
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)
    programs: dict[int, subprocess.Popen] = field(default_factory=dict)  # by machine
    wanted: set[int] = field(default_factory=set)  # machines that are to have one
    watched: threading.RLock = field(default_factory=threading.RLock)
    ended: dict[int, int] = field(default_factory=dict)  # exit codes
    unasked: Counter[str] = field(default_factory=Counter)  # ends that no fault was meant to cause

    def __post_init__(self) -> None:
        self.token = self.directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(secrets.token_hex(16) + "\n")
        self.place = self.directory / "checkpoints"  # where every machine sees its disk
        self.place.mkdir()

    @property
    def shared(self) -> bool:
        return len(set(map(id, self.disks.values()))) == 1

    def line(self, machine: int) -> list[str]:
        bin, token = ROOT / "build/release/bin", f"--token-file={self.token}"
        if machine == MASTER:
            where = f"--listen={self.net.address(machine)}:{PORT}"
            keep = [f"--journal={self.directory / 'journal'}", "--max-restarts=100000"]
            return [str(bin / "actor-master"), "-v", token, where, f"--nnodes={self.at_once}", *keep]
        # Shards are where they were only if machines keep their ranks.
        rank = f"--node-rank={machine}" if self.at_once == len(NODES) else "--rdzv-backend=c10d"
        meet = [f"--nnodes={self.at_once}", rank, f"--rdzv-endpoint=master:{PORT}"]
        own = [f"--node-name=machine-{machine}", "--max-restarts=100000", "--shutdown-timeout=5"]
        place = [f"--place={self.place / 'checkpoints'}", f"--told={self.judge.told}"]
        state = [f"--procs={self.procs}", f"--words={self.words}", f"--keep={KEEP}", f"--pace={PACE}"]
        script = [str(HERE / "storage_worker.py"), *place, *state]
        return [
            str(bin / "actor-launcher"), "-v", token, *meet, *own, f"--nproc-per-node={self.procs}",
            *script, f"--redundancy={json.dumps(self.redundancy)}",
        ]  # fmt: skip

    def start(self, machine: int) -> None:
        environment = {
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": CARD,
            "PYTHONPATH": f"{ROOT / 'python'}:{HERE}",
            "TMPDIR": str(self.directory / "tmp"),
            "CHAOS_MACHINE": str(machine),
            TAG: self.tag,
        }
        (self.directory / "tmp").mkdir(exist_ok=True)
        line = self.line(machine)
        # Every machine has its disk at the same place, and sees no other. The library is for its programs alone.
        others = " ".join(f'"{disk.place}"' for disk in dict.fromkeys(self.disks.values()))
        set_up, within = f"umount -l {others}", ""
        if machine in self.disks:
            more = self.troubles.environment(machine, self.place)
            set_up = f'mount --bind "{self.disks[machine].place}" "{self.place}" && {set_up}'
            within = " ".join(f'{name}="{value}"' for name, value in more.items())
        line = ["sh", "-c", f'{set_up} && exec env {within} "$@"', "sh", *line]
        with open(self.directory / f"machine-{machine}.log", "ab") as log:
            self.programs[machine] = subprocess.Popen(
                self.net.command(machine, line),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=base_environment() | environment,
                start_new_session=True,
            )
        self.wanted.add(machine)

    def watch(self) -> None:
        """Starts again what has ended badly, as Kubernetes would."""
        due: dict[int, float] = {}
        while self.wanted:
            looked = time.monotonic()
            time.sleep(0.05)
            with self.watched:
                for machine in list(self.wanted):
                    if (code := self.programs[machine].poll()) is None:
                        continue
                    if machine not in due:
                        due[machine] = time.monotonic() + RESTARTED_AFTER
                        self.ended[machine] = code
                        if machine in NODES:
                            self.judge.lost(machine, looked)
                            if code > 0:
                                self.unasked[f"machine {machine}, exit code {code}"] += 1
                    if code == 0:
                        self.wanted.discard(machine)
                    elif time.monotonic() > due[machine] and not self.processes(machine):
                        del due[machine]
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

    def named(self, machine: int, name: str) -> list[int]:
        found = []
        for pid in self.processes(machine):
            with contextlib.suppress(OSError):
                if name in Path(f"/proc/{pid}/comm").read_text():
                    found.append(pid)
        return found

    def workers(self, machine: int) -> list[int]:
        """The training processes of the newest life there."""
        self.judge.read(0)
        lives = [one for one in self.judge.lives.values() if machine in one.machines.values()]
        if not lives:
            return []
        life = max(lives, key=lambda one: one.generation)
        its = [pid for rank, pid in life.pids.items() if life.machines[rank] == machine]
        here = self.processes(machine)
        return [pid for pid in its if pid in here]

    def power_off(self, machine: int) -> None:
        """All of its processes, and the memory with them. It is not started again before `power_on`."""
        with self.watched:
            self.wanted.discard(machine)
            began = time.monotonic()
            end = began + 30
            while left := self.processes(machine):
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if time.monotonic() > end:
                    raise TimeoutError(f"processes that cannot be killed: {left}")
                time.sleep(0.01)
            self.programs[machine].wait()
            if machine in NODES:
                self.judge.lost(machine, began)

    def power_on(self, machine: int) -> None:
        with self.watched:
            self.start(machine)

    def goes_on(self, since: float, within: float) -> bool:
        """Whether a step was made after that moment."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            self.judge.read()
            if self.judge.newest_event[0] > since:
                return True
            if not self.wanted & set(NODES):
                return False
            time.sleep(0.1)
        return False

    def saves(self, since: float, within: float) -> bool:
        """Whether a step that was saved after that moment is complete."""
        self.judge.read()
        step, end = self.judge.newest_event[1], time.monotonic() + within
        while time.monotonic() < end:
            self.judge.read()
            at, complete = self.judge.newest_complete
            if at > since and complete > step:
                return True
            time.sleep(0.1)
        return False

    def logs(self) -> str:
        """The last that each program said."""
        files = sorted(self.directory.glob("machine-*.log"))
        last = {file.name: file.read_text(errors="replace").splitlines()[-4:] for file in files}
        return "\n".join(f"  {name}: {line[:300]}" for name, lines in last.items() for line in lines)


@contextlib.contextmanager
def started(job: Job):
    job.net.name(master=MASTER)
    keeper = threading.Thread(target=job.watch)
    try:
        for machine in (MASTER, *NODES):
            job.start(machine)
        keeper.start()
        yield job
    finally:
        job.wanted.clear()
        for disk in job.disks.values():
            disk.heal()
        if keeper.ident:
            keeper.join()
        end_tagged(job.tag)
        for program in job.programs.values():
            program.wait()
        until(lambda: not [p for p in processes_tagged(job.tag) if alive(p)], 10, "the end of all processes")
