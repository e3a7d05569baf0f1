"""What `troupe-probe` says: to people, to programs, and of devices that are broken."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Probe, environment

PAIR = {"first": 0, "second": 1, "bandwidth": 20_000, "back": 18_000, "channels": 4}


def test_this_machine_s_processors(probe: Probe) -> None:
    found = probe("--json", CUDA_VISIBLE_DEVICES="")
    assert (found.code, found.errors) == (0, "")
    (device,) = found.report["devices"]
    assert device["name"] == "cpu" and device["failed"] == ""
    assert device["compute_us"] > 0 and device["gigaflops"] > 0
    assert found.report["seconds"] == pytest.approx(device["compute_us"] / 1e6, abs=1e-6)
    assert (found.report["pairs"], found.report["failed"]) == ([], "")


def test_a_table_for_people(simulated: Probe) -> None:
    found = simulated(
        {"devices": [{"name": "H100", "copies": 2}], "pairs": [PAIR], "collectives": "NCCL 2.27.3"},
        "--box-pairs=0:1",
    )
    assert found.out.splitlines() == [
        "device  name      memory      in use    products           speed",
        "0       H100    80.0 GiB           -     40.0 ms   600.0 TFLOP/s",
        "1       H100    80.0 GiB           -     40.0 ms   600.0 TFLOP/s",
        "pair       bandwidth  channels",
        "0:1       18000 MB/s         4",
        "library for collectives: NCCL 2.27.3",
        "this node works, as far as it can tell by itself",
    ]
    assert (found.code, found.errors) == (0, "")


BROKEN: list[tuple[Any, str]] = [
    ({"devices": []}, "this node has no device at all"),
    ({"driver": "it does not start"}, "it does not start"),
    ({"devices": [{}, {"health": "worn out"}]}, "device 1: worn out"),
    ({"devices": [{"failed": "its products are wrong"}]}, "device 0: its products are wrong"),
    (
        {"devices": [{"copies": 3}, {"used_mib": 24_678}]},
        "device 3 has 24.1 of 80 GiB of its memory in use already: another process trains on it",
    ),
    ("{\n  'devices'", "line 2: is no JSON"),
    ('{"devices": [\n{"nmae": "x"}]}', "line 2: a device has no member 'nmae'"),
]


@pytest.mark.parametrize(("description", "told"), BROKEN)
def test_devices_that_are_broken(simulated: Probe, description: Any, told: str) -> None:
    found = simulated(description)
    assert (found.code, found.errors) == (1, "")
    last = found.out.splitlines()[-1]
    assert last.startswith("this node fails: ") and told in last
    assert told in simulated(description, "--json").report["failed"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--min-bandwidth=18000"], ""),
        (["--min-bandwidth=18001"], "copies from device 1 to device 0 make 18000 MB/s"),
        (["--min-channels=5"], "devices 0 and 1 have 4 channels between them"),
        (["--box-pairs=6:7"], "--box-pairs 6:7: this node has 2 devices"),
        (["--switchbox-check"], "--box-pairs 2:4: this node has 2 devices (and 2 more)"),
    ],
)
def test_switches_between_devices(simulated: Probe, arguments: list[str], told: str) -> None:
    pairs = [] if "--switchbox-check" in arguments else ["--box-pairs=0:1"]
    found = simulated({"devices": [{"copies": 2}], "pairs": [PAIR]}, "--json", *pairs, *arguments)
    assert found.report["failed"].startswith(told) and (found.report["failed"] == "") == (told == "")
    assert found.code == (1 if told else 0)


def test_processors_have_no_switches(probe: Probe) -> None:
    found = probe("--switchbox-check", CUDA_VISIBLE_DEVICES="")
    assert found.code == 1
    assert "this node fails: --switchbox-check: this node has no accelerators" in found.out


def test_a_driver_that_hangs_is_left_behind(simulated: Probe) -> None:
    found = simulated({"devices": [{}, {"does": "hang"}]}, "--within", "0.5")
    assert (found.code, found.out) == (1, "")
    assert found.errors == (
        "troupe-probe: the probe has not ended within 500 ms: it is at device 1: products of matrices\n"
    )


def test_a_driver_that_crashes_takes_the_program_along(simulated: Probe) -> None:
    assert simulated({"devices": [{"does": "crash"}]}).code == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x"], "'x' is no option of troupe-probe"),
        (["--box-pairs", "0-1"], "--box-pairs: '0-1' is no pair of devices; one is written 0:1"),
        (["--within", "0"], "--within: 0; more than 0 and at most 3600 seconds are possible"),
        (["--messages"], "--messages: a NodeProbeWanted or a DevicesProbeWanted is expected on the standard input"),
    ],
)
def test_what_must_be_typed_differently(probe: Probe, arguments: list[str], told: str) -> None:
    found = probe(*arguments)
    assert found.code == 2 and found.out == ""
    assert found.errors.startswith(f"troupe-probe: {told}") and found.errors.count("\n") == 1


def test_a_file_that_is_not_there(probe: Probe) -> None:
    found = probe(TROUPE_PROBE_DEVICES="/nowhere/devices.json")
    assert found.code == 1
    assert found.out == (
        "this node fails: TROUPE_PROBE_DEVICES=/nowhere/devices.json: No such file or directory\n"
    )


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it has not come to that within a minute"
        time.sleep(0.01)


def test_the_child_dies_with_its_parent(program: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.argv[1], '--messages'], stdin=0)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    given, kept = os.pipe()  # its input does not end while `kept` is open here
    parent = subprocess.Popen(
        [sys.executable, "-c", script, program],
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        # It puts its standard error in the place of its standard output once it has promised that.
        until(lambda: os.readlink(f"/proc/{child}/fd/1") == os.devnull)
        parent.kill()
        until(lambda: state_of(child) in ("Z", "gone"))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        parent.kill()
        parent.communicate()
        os.close(given)
        os.close(kept)
