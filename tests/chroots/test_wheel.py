"""The wheel of a clean Debian 12, on systems that have Python and nothing else: what it takes, and a job of two nodes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest
from conftest import ROOT, SUITES, System, block, clean, finish

# What the host has to have: glibc and GCC's two libraries.
OF_THE_HOST = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-x86-64\.so\.2|linux-vdso\.so\.1)$")
FILES = """
import importlib.metadata as m, json
files = {str(f.locate()): f.locate().stat().st_size for f in m.files("actor-launcher") if f.locate().exists()}
print(json.dumps(files))
"""
ACTIVE = ". env/bin/activate\n"
ADDRESSES = {"node0": "10.83.0.1", "node1": "10.83.0.2"}


@pytest.fixture(scope="module", params=SUITES)
def system(request: pytest.FixtureRequest, wheel: Path) -> Iterator[System]:
    with clean(request.param) as system:
        system.put(wheel, "build/wheel")
        system.install("python3-venv")
        system.must(block("python3 -m venv"))
        yield system


@pytest.fixture
def machines() -> Iterator[dict[str, str]]:
    """Two of them on one cable, by their names."""
    names = {name: f"chroots-{os.getpid()}-{name}" for name in ADDRESSES}

    def ip(line: str) -> None:
        subprocess.run(["ip", *line.split()], check=True)

    try:
        for space in names.values():
            ip(f"netns add {space}")
            ip(f"-n {space} link set lo up")
        ip(f"link add cable netns {names['node0']} type veth peer cable netns {names['node1']}")
        for name, space in names.items():
            ip(f"-n {space} addr add {ADDRESSES[name]}/24 dev cable")
            ip(f"-n {space} link set cable up")
        yield names
    finally:
        for space in names.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def files(system: System) -> dict[str, int]:
    said = system.must(f"{ACTIVE}python3 - <<'END'\n{FILES}END\n")
    return json.loads(said.splitlines()[-1])


def test_it_is_small(system: System, wheel: Path) -> None:
    assert wheel.stat().st_size <= 15 << 20
    assert 1 << 20 < sum(files(system).values()) <= 40 << 20


def test_it_takes_the_c_and_the_gcc_libraries_of_the_host(system: System) -> None:
    # What they load loads in turn what lies beside it, by their RPATH.
    loading = [f for f in files(system) if f.endswith(("/bin/actor-troupe", "/libtroupe_worker.so"))]
    assert len(loading) == 2
    taken = set()
    for line in system.must("".join(f"ldd '{f}'\n" for f in loading)).splitlines():
        assert "not found" not in line
        if found := re.search(r"=> (\S+)|^\s(/\S+) \(", line):
            taken.add(found[1] or found[2])
    ours = {path for path in taken if path.startswith(f"{ROOT}/env/")}
    assert len(ours) > 10
    assert not {path for path in taken - ours if not OF_THE_HOST.search(path)}


def test_a_job_of_one_node(system: System) -> None:
    assert "it runs" in system.must(f"{ACTIVE}actor-launcher --standalone --no-python echo it runs")


def worker(system: System, rank: int) -> int:
    """The process of a rank inside of the system."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"RANK={rank}".encode() in (place / "environ").read_bytes().split(b"\0"):
                if Path(os.readlink(place / "root")) == system.root:
                    return int(place.name)
        except OSError:
            continue
    raise AssertionError(f"rank {rank} has no process")


def test_a_job_of_two_nodes_survives_a_worker(system: System, machines: dict[str, str]) -> None:
    place = system.checkout
    (place / "train.py").write_text(block("import os", "docs/getting-started.md", "python"))
    hosts = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
    (system.root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
    system.must(ACTIVE + block("actor-launcher --new-token"))

    command = block("actor-launcher --nnodes 2")
    world = 2 * int(re.search(r"--nproc-per-node (\d+)", command)[1])
    ranks, last = [str(rank) for rank in range(world)], world - 1
    started = [
        system.start(f"hostname {name}\n{ACTIVE}{command}", terminal=False, machine=space)
        for name, space in machines.items()
    ]
    with ThreadPoolExecutor(2) as pool:
        nodes = [pool.submit(finish, *one, "", 120) for one in started]
        ends = time.monotonic() + 60
        while not (place / f"rank_{last}.step").exists() and not nodes[0].done():
            assert time.monotonic() < ends, "no step in 60 s"
            time.sleep(0.05)
        os.kill(worker(system, last), signal.SIGKILL)
        ended = [node.result() for node in nodes]
    # Workers that share a terminal share its lines now and then.
    output = "".join(one.output for one in ended)
    assert [one.status for one in ended] == [0, 0], output
    assert sorted(re.findall(rf"rank (\d) of {world} begins with step 1(?!\d)", output)) == ranks, output
    again = re.findall(rf"rank (\d) of {world} begins with step (\d+)", output)
    assert sorted(rank for rank, step in again if int(step) > 1) == ranks, output
    assert sorted(re.findall(r"rank (\d) has finished", output)) == ranks, output
