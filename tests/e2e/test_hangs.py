"""Ranks that stand still: the line names the culprit and what it does, and stacks say where. Real gloo, four ranks.

A rank is told to hang by a file (hanging.py), after enough steps that the limits are learnt.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT, Start
from launchers import Launcher, Run, until

WITHIN = 120.0
SCRIPT = Path(__file__).with_name("hanging.py")
CULPRIT = 2
WORK = 0.02  # seconds of a step
NEVER = 1_000_000
TOLD = re.compile(r"warning: (.*)")
# What is said of a rank that stands still or is slow, whichever it is.
VERDICT = re.compile(r"\bwaits? in \w+ #|\bhas been in |\bhas been stopped|\bis slow\b|\bhave all entered|\bhave entered, for|stand still")


@dataclass
class Job:
    run: Run
    control: Path

    def trained(self, steps: int) -> None:
        said = f"step {steps} at"

        def so_far() -> bool:
            assert self.run.launchers[0].poll() is None, self.run.err()
            return said in self.run.out()

        until(so_far, WITHIN, said)

    def ranks(self) -> dict[int, int]:
        """Their processes; each leads a session."""
        found = {}
        for pid in self.run.leftovers():
            with contextlib.suppress(OSError):
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                rank = next((e[5:] for e in environment if e.startswith(b"RANK=")), None)
                if rank is not None and os.getsid(pid) == pid:
                    found[int(rank)] = pid
        return found

    def begin(self, kind: str, where: str = "step") -> int:
        """In which process it has begun."""
        (self.control / "new").write_text(kind)
        (self.control / "new").rename(self.control / where)
        begun = re.compile(rf"hang {kind} at \S+ pid (\d+)")
        found = until(lambda: begun.search(self.run.out()), WITHIN, f"hang {kind}")
        return int(found[1])

    def sentence(self, within: float = WITHIN, *, after: int = 0) -> str:
        """The first thing that is said of ranks, or the one after so many."""

        def first() -> str | None:
            told = [line[1] for line in TOLD.finditer(self.run.err()) if "rank" in line[1]]
            return told[after] if len(told) > after else None

        return until(first, within, f"a verdict:\n{self.run.err()}")

    def goes_on(self, after: int) -> None:
        """So many standstills are over, and further steps are made."""
        until(lambda: self.run.err().count(" is over after ") == after, WITHIN, f"an end:\n{self.run.err()}")
        steps = self.run.out().count("step ")
        self.trained(steps + 20)

    def stacks(self) -> tuple[str, Path]:
        """Of how many ranks, and the directory."""
        line = re.compile(r"stacks of (\d of \d) ranks: (\S+)/py_stack\.svg")
        found = until(lambda: line.search(self.run.err()), WITHIN, f"stacks\n{self.run.err()}")
        return found[1], Path(found[2])

    def is_shown(self, function: str) -> None:
        """Both pictures are there, and of the culprit the one of Python shows this function."""
        ranks, directory = self.stacks()
        assert ranks == "4 of 4"
        for picture in ("py_stack.svg", "cpp_stack.svg"):
            assert (directory / picture).read_text().rstrip().endswith("</svg>")
        folded = (directory / "py_stack").read_text().splitlines()
        assert any(f"{function}@" in line for line in folded), "\n".join(folded)
        assert function in (directory / "py_stack.svg").read_text()


def spied(pid: int) -> list[dict]:
    """All threads of a process as py-spy sees them."""
    py_spy = Path(sys.executable).with_name("py-spy")
    done = subprocess.run([py_spy, "dump", "--json", "--pid", str(pid)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def verdicts(run: Run) -> list[str]:
    return [line for line in run.err().splitlines() if VERDICT.search(line)]


@pytest.fixture
def train(start: Start, tmp_path: Path) -> object:
    def started(*options: str, steps: int = NEVER, work: float = WORK, program: str = "ddp", **how: object) -> Job:
        environment = {"PYTHONPATH": str(ROOT / "python")}
        worker = [str(SCRIPT), str(tmp_path), str(steps), str(work), program]
        how = {"procs": 4, "environment": environment} | how
        return Job(start(worker, options=list(options), **how), tmp_path)

    return started


TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 29400
CABLE = "cable"


def command(line: str) -> None:
    done = subprocess.run(line.split(), capture_output=True, text=True)
    assert done.returncode == 0, f"{line}: {done.stderr.strip()}"


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """Two of them, with one cable between. Needs root."""
    names = [f"hangs-{os.getpid()}-{i}" for i in range(2)]
    try:
        for name in names:
            command(f"ip netns add {name}")
            command(f"ip -n {name} link set lo up")
        ends = f"{CABLE} netns {names[0]} type veth peer {CABLE} netns {names[1]}"
        command(f"ip link add {ends}")
        for i, name in enumerate(names):
            command(f"ip -n {name} addr add 10.0.0.{i + 1}/24 dev {CABLE}")
            command(f"ip -n {name} link set {CABLE} up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def on_machines(machines: list[str], start: Start, launcher: Launcher, control: Path, program: str) -> list[Run]:
    """Two ranks on each."""

    class Inside(Launcher):
        def command(self, command: list[str], **how: object) -> list[str]:
            machine, *own = how["options"]
            return ["ip", "netns", "exec", machine, self.program, "--nproc-per-node=2", *own, *command]

    def node(rank: int) -> Run:
        where = [f"--node-rank={rank}", "--nnodes=2", f"--rdzv-endpoint=10.0.0.1:{PORT}"]
        return start(
            [str(SCRIPT), str(control), str(NEVER), str(WORK), program],
            launcher=Inside(launcher.name, launcher.program),
            options=[machines[rank], *where],
            environment={"GLOO_SOCKET_IFNAME": CABLE, "TROUPE_TOKEN": TOKEN},
        )

    return [node(0), node(1)]


@pytest.mark.skipif(shutil.which("iptables") is None, reason="cuts a link with iptables")
def test_a_link_that_is_cut_between_nodes_is_told(
    machines: list[str], start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    nodes = on_machines(machines, start, launcher, tmp_path, "ddp")
    job = Job(nodes[0], tmp_path)
    job.trained(40)
    # All but the link to the master.
    for rule in (f"--sport {PORT} -j ACCEPT", f"--dport {PORT} -j ACCEPT", "-j DROP"):
        command(f"ip netns exec {machines[1]} iptables -A INPUT -i {CABLE} -p tcp {rule}")
    told = job.sentence()
    # A rank may be cut off just before it leaves a collective that the others have left.
    all_inside = r"ranks 0-3 have all entered all_reduce #\d+ of group default_pg and none has left it for "
    some_behind = r"ranks? [0-3, -]+ ha(s|ve) not left all_reduce #\d+ of group default_pg, which all have entered, for "
    assert re.match(f"{all_inside}|{some_behind}", told)
    assert re.search(r"the connections? to .*10\.0\.0\.\d:\d+.* (is|are) unanswered", told)
    command(f"ip netns exec {machines[1]} iptables -F INPUT")
    # Connections come back one after the other, and the last one may have been told as its rank's.
    over = re.compile(r"the standstill of (the network|ranks? [0-3, -]+) is over")
    until(lambda: over.search(nodes[0].err()), WITHIN, "the standstill is over")


@pytest.mark.long
def test_a_network_card_that_is_down_between_messages_is_told(machines: list[str], start: Start, launcher: Launcher, tmp_path: Path) -> None:
    nodes = on_machines(machines, start, launcher, tmp_path, "messages")
    job = Job(nodes[0], tmp_path)
    job.trained(40)
    # The node's own link to its master goes another way.
    command(f"ip netns exec {machines[1]} iptables -A OUTPUT -o {CABLE} -p tcp --sport {PORT} -j ACCEPT")
    for machine, chain, way in ((machines[1], "INPUT", "i"), (machines[1], "OUTPUT", "o")):
        for rule in (f"--sport {PORT} -j ACCEPT", f"--dport {PORT} -j ACCEPT", "-j DROP"):
            command(f"ip netns exec {machine} iptables -A {chain} -{way} {CABLE} -p tcp {rule}")
    told = job.sentence()
    assert re.match(r"ranks? [0-3, -]+ waits? in (send|recv) of group default_pg p2p for ", told)
    assert re.search(r"the connections? to .*10\.0\.0\.\d:\d+.* (is|are) unanswered", told)


# What is asked, where, the sentence after the ranks that wait, the function in the stacks.
KINDS = {
    "stop": ("step", r"has been stopped \(SIGSTOP\) for .* s: kill -CONT {pid} lets it go on", "main"),
    "deadlock": ("step", r"has been in hanging\.py:\d+ \(lock_twice\) for .* s", "lock_twice"),
    "interpreter": ("step", r"has been in read\(\) at hanging\.py:\d+ \(keep_the_interpreter\) for .* s", "keep_the_interpreter"),
    "spin": ("step", r"has been in a loop in hanging\.py:\d+ \(spin\) for .* s", "spin"),
    "undumpable": ("step", r"has been in .*", ""),
    "loader": ("loader", r"has been in read\(\) at hanging\.py:\d+ \(read_from_storage\) of its data loader's worker 0 for .* s", "read_from_storage"),
}


@pytest.mark.parametrize("kind", [k if k in ("stop", "loader") else pytest.param(k, marks=pytest.mark.long) for k in KINDS])
def test_the_rank_that_the_others_wait_for_is_named(train, kind: str) -> None:
    where, does, function = KINDS[kind]
    job = train()
    job.trained(40)
    pid = job.begin(kind, where)
    waits = rf"ranks 0, 1, 3 wait in all_reduce #\d+ of group default_pg for rank {CULPRIT}, which "
    assert re.match(waits + does.format(pid=pid), job.sentence())
    if function:
        job.is_shown(function)


# Programs whose steps no optimizer of PyTorch makes, and the collective that the others wait in.
LOOPS = {"all_reduce": "all_reduce", "by_hand": "all_reduce", "engine": "all_reduce", "inference": "all_gather"}


@pytest.mark.parametrize("program", [p if p == "all_reduce" else pytest.param(p, marks=pytest.mark.long) for p in LOOPS])
def test_programs_without_steps_are_watched_by_their_collectives(train, program: str, tmp_path: Path) -> None:
    (tmp_path / "step").write_text("stop")  # in the first step already
    job = train(program=program)
    begun = re.compile(r"hang stop at \S+ pid (\d+)")
    pid = int(until(lambda: begun.search(job.run.out()), WITHIN, f"a stop\n{job.run.err()}")[1])
    assert re.search(rf"rank {CULPRIT}(, which)? has been stopped \(SIGSTOP\) for .* s: kill -CONT {pid} lets it go on", job.sentence())
    os.kill(pid, signal.SIGCONT)
    job.goes_on(1)
    job.trained(150)
    # A deadlock, beside a thread that starts programs and beside one that sends.
    for told, kind in enumerate(("programs", "upload"), 1):
        job.begin(kind)
        waits = rf"ranks 0, 1, 3 wait in {LOOPS[program]} #\d+ of group default_pg for rank {CULPRIT}, which "
        assert re.match(waits + r"has been in hanging\.py:\d+ \(lock_twice\) for .* s", job.sentence(after=told))
        os.kill(pid, signal.SIGUSR1)
        job.goes_on(told + 1)


@pytest.mark.long
def test_pytorch_s_own_record_and_py_spy_tell_the_same(train) -> None:
    job = train(environment={"PYTHONPATH": str(ROOT / "python"), "TORCH_FR_BUFFER_SIZE": "100"})
    job.trained(40)
    job.begin("deadlock")
    waits = re.match(r"ranks 0, 1, 3 wait in (\w+) #(\d+) of group (\w+) for rank 2", job.sentence())
    collective, number, group = waits[1], int(waits[2]), waits[3]
    ranks, directory = job.stacks()
    assert ranks == "4 of 4"
    records = {rank: directory / f"flight_record_{rank}.json" for rank in range(4)}
    until(lambda: all(r.exists() for r in records.values()), WITHIN, f"records\n{job.run.err()}")
    for rank, file in records.items():
        entries = json.loads(file.read_text())["entries"]
        last = max((e for e in entries if group in e["process_group"]), key=lambda e: e["collective_seq_id"])
        finished = rank == CULPRIT
        assert last["collective_seq_id"] == number - finished
        assert last["profiling_name"] == f"gloo:{collective}"
        assert last["retired"] is finished
    folded = (directory / "py_stack").read_text()
    for rank, pid in job.ranks().items():
        for thread in spied(pid):
            for frame in thread["frames"]:
                assert f"{frame['name']}@{frame['filename']}" in folded, f"rank {rank}: {frame}\n{folded}"


def test_a_rank_that_leaves_the_order_of_collectives_is_named(train) -> None:
    job = train()
    job.trained(40)
    job.begin("order")
    assert re.match(
        rf"rank {CULPRIT} has entered barrier #\d+ of group default_pg where ranks 0, 1, 3 are in all_reduce: "
        "the order of collectives differs",
        job.sentence(),
    )
    job.is_shown("leave_the_order")


def test_a_slow_rank_is_told_apart_from_one_that_hangs(train) -> None:
    job = train(work=0.05)
    job.trained(80)
    job.begin("slow")
    assert re.match(rf"rank {CULPRIT} is slow: it works for .* in a step where the others need ", job.sentence())
    job.trained(100)  # it goes on


@pytest.mark.long
def test_a_full_disk_under_a_data_loader_is_told(train, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(full)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.decode().strip()}")
    try:
        job = train()
        job.trained(40)
        job.begin("disk", "loader")
        assert re.match(
            rf"ranks 0, 1, 3 wait in all_reduce #\d+ of group default_pg for rank {CULPRIT}, which has been in .*"
            r"\(write_to_cache\) of its data loader's worker 0 for ",
            job.sentence(),
        )
        until(lambda: f"the file system of {full} is full" in job.run.err(), WITHIN, f"the reason\n{job.run.err()}")
        job.is_shown("write_to_cache")
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


@pytest.mark.long
def test_what_takes_long_and_is_no_hang_is_not_told(start: Start, tmp_path: Path) -> None:
    run = start([str(SCRIPT.with_name("steady.py")), "3", str(tmp_path / "checkpoint")], procs=4)
    assert run.wait(WITHIN) == [0]
    assert "finished" in run.out()
    assert verdicts(run) == []


def test_a_rank_that_hangs_is_ended_and_training_starts_again(train) -> None:
    job = train("--hang-action=act", steps=80, restarts=1)
    job.trained(40)
    job.begin("stop")
    assert job.run.wait(WITHIN) == [0]
    said = job.run.err()
    assert f"rank {CULPRIT} is ended, so that the job starts again" in said
    assert "hung" in said
    assert len(re.findall(r"^step 79 at", job.run.out(), re.M)) == 1


def test_a_command_hears_of_it(train, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    job = train("--hang-action=notify", f"--hang-command=env > {heard}.new; mv {heard}.new {heard}")
    job.trained(40)
    job.begin("deadlock")
    until(heard.exists, WITHIN, f"the command\n{job.run.err()}")
    told = dict(line.split("=", 1) for line in heard.read_text().splitlines() if line.startswith("TROUPE_HANG_"))
    assert told["TROUPE_HANG_RANKS"] == str(CULPRIT)
    assert told["TROUPE_HANG_KIND"] == "not_entered"
    assert told["TROUPE_HANG_SENTENCE"] == job.sentence()
    assert (Path(told["TROUPE_HANG_STACKS"]) / "py_stack.svg").exists()


@pytest.mark.long
def test_the_users_limit_wins(train) -> None:
    job = train("--hang-timeout=6")
    job.trained(40)
    job.begin("stop")
    stood = re.search(r"has been stopped \(SIGSTOP\) for (\S+) s", job.sentence())
    assert float(stood[1]) >= 6


LONG_ENOUGH = 7.0  # for a verdict


def nothing_is_told(job: Job) -> None:
    """That something is absent can only be seen by waiting."""
    time.sleep(LONG_ENOUGH)
    assert verdicts(job.run) == []


@pytest.mark.long
def test_off_means_off(train) -> None:
    job = train("--hang-action=off")
    job.trained(40)
    job.begin("stop")
    nothing_is_told(job)


def ptrace(request: int, pid: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long] * 4
    assert call(request, pid, 0, 0) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.long
def test_a_debugger_is_no_hang(train) -> None:
    job = train()
    job.trained(40)
    pid = job.ranks()[CULPRIT]
    ptrace(16, pid)  # PTRACE_ATTACH
    os.waitpid(pid, 0x40000000)  # __WALL
    nothing_is_told(job)
    ptrace(17, pid)  # PTRACE_DETACH
    steps = job.run.out().count("step ")
    job.trained(steps + 20)
    assert verdicts(job.run) == []


@pytest.mark.long
def test_a_rank_that_spoils_its_page_harms_no_other(train) -> None:
    job = train()
    job.trained(40)
    job.begin("page")
    job.trained(80)
    ranks = job.ranks()
    os.kill(ranks[1], signal.SIGSTOP)
    # What rank 2 says of itself is nonsense, so it may be named beside the one that is stopped.
    named = r"(.*for )?(rank 1, which|rank 1|ranks 1, 2: rank 1) has been stopped \(SIGSTOP\)"
    assert re.match(named, job.sentence())


@pytest.mark.long
def test_a_rank_may_end_while_its_stacks_are_read(train) -> None:
    job = train()
    job.trained(40)
    pid = job.begin("stop")
    job.sentence()
    os.kill(pid, signal.SIGKILL)
    assert job.run.wait(WITHIN) == [1]
    assert f"rank {CULPRIT}" in job.run.err().rpartition("wait in")[2]
