"""The check before the start: what is broken is named and leaves, the others train. Real launchers, no PyTorch.

Machines are network namespaces, whose cables are cut or throttled, or lose packets; that needs root.
Devices are simulated (TROUPE_PROBE_DEVICES).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import CALM
from launchers import PYTHON, Launcher, Run, alive, free_port, until
from machines import CARD, Network, network

WITHIN = 60.0
TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 29400  # of the master, where machines are apart
CONF = CALM["PET_RDZV_CONF"]
PROBE = 3  # seconds: a probe on a cut cable takes all of its time
FAR_SLOWER = "--straggler-factor=3"  # four machines on two cores are not equally fast

# What it says, and that it is there until the test ends it.
WORKER = f"""#!/bin/sh
exec {PYTHON} -ISc '
import os, sys, time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "at", time.monotonic_ns(), "pid", os.getpid(), flush=True)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and "FIRST_ENDS_WITH" in os.environ:
    sys.exit(int(os.environ["FIRST_ENDS_WITH"]))
while os.path.exists(sys.argv[1]):
    time.sleep(0.02)
' "$TRAINS_WHILE"
"""
BEGAN = re.compile(r"^rank (\d+) of (\d+) at (\d+) pid (\d+)$", re.M)


NEEDS_TOOLS = pytest.mark.skipif(
    shutil.which("iptables") is None or shutil.which("tc") is None,
    reason="breaks cables with iptables and tc",
)


@dataclass(frozen=True)
class Worker:
    rank: int
    world_size: int
    began_ns: int
    pid: int


class Inside(Launcher):
    """The first option is the command line before ours, as words of JSON, the second the program."""

    def command(self, worker: list[str], **how: object) -> list[str]:
        before, program, *own = how["options"]
        ours = str(Path(self.program).with_name(program))
        return [*json.loads(before), ours, *own, *worker]


class Job:
    """Nodes by name; the first runs the master, and has the options of the check."""

    def __init__(self, launcher: Launcher, directory: Path, jobs: contextlib.ExitStack) -> None:
        self.launcher = Inside(launcher.name, launcher.program)
        self.directory = directory
        self.jobs = jobs
        self.where = f"127.0.0.1:{free_port()}"
        self.net: Network | None = None
        self.nnodes = "2"
        self.runs: dict[str, Run] = {}
        self.worker = directory / "worker.sh"
        self.worker.write_text(WORKER)
        self.worker.chmod(0o755)
        self.trains_while = directory / "trains"

    @property
    def log(self) -> Path:
        return self.directory / "events.json"

    def start(self, name: str, *options: object, program: str = "actor-launcher", **environment: str) -> Run:
        place = self.directory / name
        place.mkdir()
        before = self.net.command(0 if name == "master" else int(name[1:]), []) if self.net else []
        if program == "actor-master":
            own, command = [f"--listen={self.where}"], []
        else:
            # Where all have the master's address, the first one runs it.
            hosts = int(name == "n0" and "master" not in self.runs)
            own = [f"--node-name={name}", f"--rdzv-endpoint={self.where}", "--no-python", f"--rdzv-conf={CONF},is_host={hosts}"]
            command = [str(self.worker)]
        run = Run(
            self.launcher,
            command,
            place,
            options=[json.dumps(before), program, f"--nnodes={self.nnodes}", *own, *map(str, options)],
            environment=CALM
            | {"TROUPE_TOKEN": TOKEN, "TRAINS_WHILE": str(self.trains_while)}
            | environment,
        )
        self.runs[name] = self.jobs.enter_context(run)
        return run

    def start_all(self, *options: object, nodes: int, own: dict[str, dict[str, str]] | None = None) -> None:
        """n0 has these options, each node its own environment."""
        for name in (f"n{number}" for number in range(nodes)):
            first = [f"--json-log={self.log}", "--network-check", *options]
            self.start(name, *(first if name == "n0" else []), **(own or {}).get(name, {}))

    # ---- what is seen ----

    def events(self, name: str) -> list[dict]:
        """As far as they are told: the last line may not be whole."""
        told = self.log.read_text() if self.log.exists() else ""
        lines = [json.loads(line) for line in told.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if line["event"] == name]

    def fields(self, name: str) -> list[dict]:
        return [event["fields"] for event in self.events(name)]

    def said(self) -> str:
        return "\n".join(f"{name}:\n{run.err()}{run.out()}" for name, run in self.runs.items())

    def waits_for(self, event: str, count: int = 1) -> list[dict]:
        try:
            return until(lambda: e if len(e := self.events(event)) >= count else None, WITHIN, event)
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{self.said()}") from None

    def workers(self, name: str) -> list[Worker]:
        """All that this node has had, in order."""
        return [Worker(*map(int, words)) for words in BEGAN.findall(self.runs[name].out())]

    def trained(self, *names: str) -> None:
        """These nodes have had one worker each, in one world, and the job is a success."""
        for name in names:
            assert self.runs[name].wait(WITHIN) == [0], self.said()
        workers = [worker for name in names for worker in self.workers(name)]
        assert sorted(worker.rank for worker in workers) == list(range(len(names))), self.said()
        assert {worker.world_size for worker in workers} == {len(names)}

    def left(self, name: str, *reasons: str) -> None:
        """It never trained, and its launcher tells why."""
        run = self.runs[name]
        [code] = run.wait(WITHIN)
        assert code != 0, self.said()
        assert run.out() == ""
        for reason in reasons:
            assert reason in run.err(), self.said()

    def over(self) -> dict:
        [fields] = self.fields("check_over")
        return fields


@pytest.fixture
def job(launcher: Launcher, tmp_path: Path) -> Iterator[Job]:
    with contextlib.ExitStack() as jobs:
        yield Job(launcher, tmp_path, jobs)


@pytest.fixture
def four(job: Job, tmp_path: Path) -> Iterator[Job]:
    """Four machines of which three suffice."""
    with network(4, tmp_path / "hosts") as net:
        job.net, job.where, job.nnodes = net, f"{net.address(0)}:{PORT}", "3:4"
        yield job


def on(net: Network, machine: int, line: str) -> None:
    done = subprocess.run(net.command(machine, line.split()), capture_output=True, text=True)
    assert done.returncode == 0, f"{line}: {done.stderr.strip()}"


def cut(net: Network, machine: int, other: int) -> None:
    """Neither hears the other."""
    for here, there in ((machine, other), (other, machine)):
        on(net, here, f"iptables -A INPUT -s {net.address(there)} -j DROP")


def keep_the_master(net: Network, machine: int) -> None:
    """Whatever is lost later, the link to the master is not."""
    for end in ("--sport", "--dport"):
        on(net, machine, f"iptables -A INPUT -p tcp {end} {PORT} -j ACCEPT")


def all_are_good(job: Job, *names: str) -> None:
    job.trained(*names)
    [begun] = job.events("check_begun")
    [over] = job.events("check_over")
    checked = job.fields("node_checked")
    assert sorted(fields["node"] for fields in checked) == sorted(names)
    assert all(fields["good"] and fields["own_seconds"] > 0 for fields in checked)
    assert all(fields["group_seconds"] > 0 and fields["latency_us"] > 0 for fields in checked)
    assert over["fields"]["nodes"] == over["fields"]["good_nodes"] == len(names)
    assert over["fields"]["leaving"] == 0
    assert over["fields"]["rounds"] >= 1
    assert job.fields("group_failed") == []
    began = min(worker.began_ns for name in names for worker in job.workers(name))
    assert begun["monotonic_ns"] < over["monotonic_ns"] < began


@pytest.mark.parametrize("names", [("n0", "n1"), ("n0", "n1", "n2")], ids=["pair", "ring of three"])
def test_good_nodes_train_after_the_check(job: Job, names: tuple[str, ...]) -> None:
    job.nnodes = str(len(names))
    job.start_all(nodes=len(names))
    all_are_good(job, *names)


def test_a_master_alone_checks_as_well(job: Job) -> None:
    job.start("master", f"--json-log={job.log}", "--network-check", program="actor-master")
    for name in ("n0", "n1"):
        job.start(name)
    all_are_good(job, "n0", "n1")
    assert job.runs["master"].wait(WITHIN) == [0]


@pytest.mark.parametrize("options", [["--network-check", "--comm-perf-test"], pytest.param(["--precheck=2"], marks=pytest.mark.long)])
def test_bandwidths_are_measured_for_each_size(job: Job, options: list[str]) -> None:
    job.nnodes = "3"
    job.start("n0", f"--json-log={job.log}", *options)
    for name in ("n1", "n2"):
        job.start(name)
    all_are_good(job, "n0", "n1", "n2")
    measured = job.fields("communication_measured")
    sizes = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20]
    for collective, on_the_bus in (("all-reduce", 4 / 3), ("all-gather", 2 / 3)):
        of_it = [fields for fields in measured if fields["collective"] == collective]
        assert [fields["bytes"] for fields in of_it] == sizes
        for fields in of_it:
            assert fields["nodes"] == fields["ranks"] == 3
            assert fields["means"] == "ring over TCP"
            assert fields["microseconds"] > 0
            speed = fields["bytes"] / fields["microseconds"] / 1e3
            assert fields["algorithm_gb_per_second"] == pytest.approx(speed)
            assert fields["bus_gb_per_second"] == pytest.approx(on_the_bus * speed)
    row = r"all-(?:reduce|gather) +\d+ [KM]iB among 3 nodes: .* on the bus \(ring over TCP\)$"
    table = re.findall(row, job.runs["n0"].err(), re.M)
    assert len(table) == 2 * len(sizes)


@pytest.mark.long
def test_a_node_that_freezes_does_not_hold_up_the_others(job: Job) -> None:
    job.nnodes = "3:4"
    job.start_all(nodes=1)
    job.start("n2")
    job.waits_for("node_joined", 2)
    for pid in job.runs["n2"].leftovers():
        os.kill(pid, signal.SIGSTOP)
    for name in ("n1", "n3"):
        job.start(name)
    job.trained("n0", "n1", "n3")
    [fault] = job.fields("node_faulty")
    assert fault["names"] == "n2"
    assert "node n2 is faulty: its own probe did not end in time" in job.runs["n0"].err()
    assert job.over()["seconds"] < 30  # the limit of its probe


# ---- a device ----

DEVICES = {
    "computes wrongly": ({"failed": "one entry of the product is 3 and must be 4"}, "one entry of the product is 3 and must be 4"),
    "crashes": ({"does": "crash"}, "was killed by SIG"),
    "hangs": ({"does": "hang"}, "has not ended within 3.0 s, and was killed"),
    "is in use": ({"used_mib": 40960}, "40 of 80 GiB of its memory in use already"),
}


def devices(directory: Path, *described: dict, **others: object) -> str:
    file = directory / f"devices-{len(list(directory.glob('devices-*')))}.json"
    file.write_text(json.dumps({"devices": described} | others))
    return str(file)


@pytest.mark.parametrize("what", [k if k in ("crashes",) else pytest.param(k, marks=pytest.mark.long) for k in DEVICES])
def test_a_node_with_a_device_that(job: Job, tmp_path: Path, what: str) -> None:
    job.nnodes = "2:3"
    described, reason = DEVICES[what]
    broken = devices(tmp_path, {}, described)
    job.start_all("--network-check-timeout=3", nodes=3, own={"n2": {"TROUPE_PROBE_DEVICES": broken}})
    job.trained("n0", "n1")
    job.left("n2", reason, "device 1")
    [fault] = job.fields("node_faulty")
    assert fault["names"] == "n2"
    assert reason in job.runs["n0"].err()
    assert job.over()["good_nodes"] == 2


@pytest.mark.long
def test_a_switch_between_devices_that_is_slow(job: Job, tmp_path: Path) -> None:
    job.nnodes = "2:3"

    def node(bandwidth: int) -> dict[str, str]:
        pairs = [{"first": 0, "second": 1, "bandwidth": 20000, "back": bandwidth, "channels": 2}]
        return {"TROUPE_PROBE_DEVICES": devices(tmp_path, {"copies": 2}, pairs=pairs)}

    job.start_all(
        *("--switchbox-check", "--box-pairs=0:1", "--min-bandwidth=15000"),
        nodes=3,
        own={"n0": node(18000), "n1": node(15000), "n2": node(14999)},
    )
    job.trained("n0", "n1")
    job.left("n2", "14999", "15000")
    [fault] = job.fields("node_faulty")
    assert fault["names"] == "n2"


# ---- devices that have a library for collectives ----

LIBRARY = "NCCL 2.27.3"


def grouped(directory: Path, copies: int = 4, collectives: str = LIBRARY, **others: object) -> dict[str, str]:
    """A node whose devices take part in groups."""
    described = devices(directory, {"copies": copies}, collectives=collectives, **others)
    return {"TROUPE_PROBE_DEVICES": described}


def test_devices_with_a_library_are_probed_by_it(job: Job, tmp_path: Path) -> None:
    job.nnodes = "3"
    nodes = {
        "n0": grouped(tmp_path),
        "n1": grouped(tmp_path, copies=2),
        "n2": grouped(tmp_path, group_bandwidth=1000),
    }
    job.start_all("--comm-perf-test", nodes=3, own=nodes)
    all_are_good(job, "n0", "n1", "n2")
    measured = job.fields("communication_measured")
    assert len(measured) == 10
    for fields in measured:
        assert (fields["means"], fields["nodes"], fields["ranks"]) == (LIBRARY, 3, 10)
        # The slowest node counts: 1000 MB/s.
        assert fields["microseconds"] == fields["bytes"] // 1000
        on_the_bus = {"all-reduce": 1.8, "all-gather": 0.9}[fields["collective"]]
        assert fields["bus_gb_per_second"] == pytest.approx(on_the_bus * fields["algorithm_gb_per_second"])
    assert f"on the bus ({LIBRARY}, 10 devices)" in job.runs["n0"].err()


@pytest.mark.long
def test_a_node_without_their_library_is_probed_by_the_ring(job: Job, tmp_path: Path) -> None:
    nodes = {"n0": grouped(tmp_path), "n1": grouped(tmp_path, collectives="NCCL 2.26.2", group_failed="never tried")}
    job.start_all("--comm-perf-test", nodes=2, own=nodes)
    all_are_good(job, "n0", "n1")
    assert {fields["means"] for fields in job.fields("communication_measured")} == {"ring over TCP"}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"group_failed": "unhandled system error"}, "unhandled system error"),
        pytest.param({"group_does": "crash"}, "was killed by SIGSEGV", marks=pytest.mark.long),
        pytest.param({"group_does": "hang"}, "has not ended within", marks=pytest.mark.long),
    ],
    ids=["fails", "crashes", "hangs"],
)
def test_a_node_whose_devices_reach_no_others(job: Job, tmp_path: Path, broken: dict, reason: str) -> None:
    job.nnodes = "2:3"
    nodes = {"n0": grouped(tmp_path), "n1": grouped(tmp_path), "n2": grouped(tmp_path, **broken)}
    job.start_all(f"--network-check-timeout={PROBE}", nodes=3, own=nodes)
    job.trained("n0", "n1")
    job.left("n2", "node n2 is faulty: its probes failed with ")
    [fault] = job.fields("node_faulty")
    assert fault["names"] == "n2"
    said = [fields["reason"] for fields in job.fields("group_failed") if fields["node"] == "n2"]
    assert said and all(reason in line for line in said), said


# ---- the network ----


@NEEDS_TOOLS
@pytest.mark.long
def test_a_node_that_reaches_the_master_only(four: Job) -> None:
    keep_the_master(four.net, 3)
    on(four.net, 3, f"iptables -A INPUT -i {CARD} -j DROP")
    four.start_all(f"--network-check-timeout={PROBE}", nodes=4)
    four.trained("n0", "n1", "n2")
    four.left("n3", "node n3 is faulty: its probes failed with ")
    [fault] = four.fields("node_faulty")
    assert fault["names"] == "n3"
    assert four.fields("link_faulty") == []


def one_end_leaves(job: Job, *ends: str) -> None:
    """Which of them depends on the order in which they came."""
    last = {fields["node"]: fields["good"] for fields in job.fields("node_checked")}
    [leaves] = [end for end in ends if not last[end]]
    job.left(leaves, "the link between ", f"; {leaves} leaves")
    job.trained(*(name for name in job.runs if name != leaves))


@NEEDS_TOOLS
def test_a_link_that_is_cut(four: Job) -> None:
    cut(four.net, 2, 3)
    four.start_all(f"--network-check-timeout={PROBE}", nodes=4)
    four.waits_for("check_over")
    [fault] = four.fields("link_faulty")
    assert sorted(fault["names"].split(",")) == ["n2", "n3"]
    assert four.fields("node_faulty") == []
    one_end_leaves(four, "n2", "n3")


@NEEDS_TOOLS
@pytest.mark.parametrize("excluded", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_node_with_a_slow_cable(four: Job, excluded: bool) -> None:
    on(four.net, 3, f"tc qdisc add dev {CARD} root tbf rate 90mbit burst 64k latency 100ms")
    four.start_all(FAR_SLOWER, *(["--exclude-straggler"] if excluded else []), nodes=4)
    if excluded:
        four.trained("n0", "n1", "n2")
        four.left("n3", "node n3 is slow: its best probe with others takes ", "it leaves")
    else:
        four.trained("n0", "n1", "n2", "n3")
        assert "node n3 is slow: its best probe with others takes " in four.runs["n0"].err()
    [slow] = four.fields("node_slow")
    assert slow["names"] == "n3"
    assert slow["seconds"] > 2 * slow["median_seconds"] > 0
    assert four.fields("node_faulty") == []


@NEEDS_TOOLS
@pytest.mark.long
def test_a_node_that_loses_packets(four: Job) -> None:
    keep_the_master(four.net, 3)
    on(four.net, 3, f"iptables -A INPUT -i {CARD} -m statistic --mode random --probability 0.3 -j DROP")
    four.start_all(f"--network-check-timeout={PROBE}", "--exclude-straggler", FAR_SLOWER, nodes=4)
    four.trained("n0", "n1", "n2")
    four.left("n3", "node n3 is ")
    found = four.fields("node_faulty") + four.fields("node_slow")
    assert {fields["names"] for fields in found} == {"n3"}


@NEEDS_TOOLS
@pytest.mark.long
def test_two_nodes_whose_link_is_cut_wait_for_a_third(job: Job, tmp_path: Path) -> None:
    with network(3, tmp_path / "hosts") as net:
        job.net, job.where, job.nnodes = net, f"{net.address(0)}:{PORT}", "2:3"
        for machine in (0, 1):
            keep_the_master(net, machine)
        cut(net, 0, 1)
        job.start_all(f"--network-check-timeout={PROBE}", nodes=2)
        job.waits_for("check_waits")
        [undecided] = job.fields("check_undecided")
        assert sorted(undecided["names"].split(",")) == ["n0", "n1"]
        assert "failed, and it cannot be told which node or link it was" in job.runs["n0"].err()
        job.start("n2")
        job.waits_for("check_over", 2)
        [fault] = job.fields("link_faulty")
        assert sorted(fault["names"].split(",")) == ["n0", "n1"]
        one_end_leaves(job, "n0", "n1")


# ---- while the job runs ----


def test_a_broken_newcomer_costs_nothing_and_a_good_one_is_taken_in(job: Job, tmp_path: Path) -> None:
    job.nnodes = "2:3"
    job.trains_while.touch()
    job.start_all(nodes=2)
    until(lambda: job.workers("n0") and job.workers("n1"), WITHIN, f"training\n{job.said()}")
    first = {name: job.workers(name)[0].pid for name in ("n0", "n1")}

    job.start("n2", TROUPE_PROBE_DEVICES=devices(tmp_path, {"failed": "it computes nonsense"}))
    job.left("n2", "it computes nonsense")
    assert [f["names"] for f in job.fields("node_faulty")] == ["n2"]
    assert all(alive(pid) for pid in first.values())
    assert len(job.events("training_started")) == 1
    assert job.fields("restarting") == []

    job.start("n3")
    until(lambda: len(job.workers("n3")) == 1, WITHIN, f"the newcomer\n{job.said()}")
    until(lambda: all(len(job.workers(name)) == 2 for name in first), WITHIN, "the others")
    job.trains_while.unlink()
    for name in ("n0", "n1", "n3"):
        assert job.runs[name].wait(WITHIN) == [0], job.said()
    last = [job.workers(name)[-1] for name in ("n0", "n1", "n3")]
    assert {worker.world_size for worker in last} == {3}
    assert sorted(worker.rank for worker in last) == [0, 1, 2]


@pytest.mark.parametrize(("code", "checks"), [(1, 1), (201, 2)], ids=["software", "hardware"])
def test_after_a_failure_nodes_are_checked_again_if_it_was_hardware(job: Job, code: int, checks: int) -> None:
    job.nnodes = "2:3"
    job.trains_while.touch()
    failing = {"n2": {"FIRST_ENDS_WITH": str(code)}}
    job.start_all("--max-restarts=1", nodes=3, own=failing)
    job.waits_for("training_again")
    job.trains_while.unlink()
    for name in ("n0", "n1"):
        assert job.runs[name].wait(WITHIN) == [0], job.said()
    assert len(job.events("check_begun")) == checks
    assert job.runs["n2"].wait(WITHIN) == [0 if checks == 1 else 1], job.said()
