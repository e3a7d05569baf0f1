"""NVIDIA's devices, by libraries that are put in the place of CUDA's driver, cuBLAS and NVML.

There is no device: what is shown is that each library is called as its headers say, and that what it answers is
understood. `runtime/os/probe/cuda_abi_check.cpp` compares with the headers where those are.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Probe


def test_devices_that_work(nvidia: Probe) -> None:
    # The second one is too old for bfloat16: its products are made in half.
    found = nvidia("--json")
    assert (found.code, found.errors) == (0, ""), found.out
    devices = found.report["devices"]
    assert [d["name"] for d in devices] == ["Fake GPU 0", "Fake GPU 1"]
    assert {d["memory_bytes"] for d in devices} == {80 << 30}
    assert {d["memory_used_bytes"] for d in devices} == {1 << 29}
    # Fifty products of half a millisecond.
    assert {d["compute_us"] for d in devices} == {25_000}
    assert found.report["seconds"] == 0.025
    assert devices[0]["gigaflops"] == pytest.approx(2 * 1024**3 / 0.0005 / 1e9)


def test_a_library_for_products_that_the_driver_is_too_old_for(nvidia: Probe) -> None:
    found = nvidia(FAKE_VERSION="11080")
    assert found.code == 0
    assert found.out.count("no products were made: the library for them (cuBLAS) was not found") == 2
    assert nvidia("--json", FAKE_VERSION="11080").report["seconds"] == 0
    assert nvidia("--json", FAKE_VERSION="13000").report["seconds"] == 0.025


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"FAKE_WRONG": "1"}, "device 1: a product of matrices is wrong"),
        ({"FAKE_NO_MEMORY": "0"}, "device 0: its memory is not to be had: what the driver says (CUDA error 2)"),
        ({"FAKE_USED": "1"}, "device 1 has 40 of 80 GiB of its memory in use already"),
        ({"FAKE_ECC": "0"}, "device 0: 2 errors of its memory that could not be corrected"),
        ({"FAKE_REMAP": "1"}, "device 1: a broken row of its memory waits to be replaced"),
        ({"FAKE_UNREPAIRED": "1"}, "device 1: a broken row of its memory could not be replaced"),
        ({"FAKE_RETIRED": "0"}, "device 0: a broken page of its memory waits to be retired"),
    ],
)
def test_devices_that_are_broken(nvidia: Probe, settings: dict[str, str], told: str) -> None:
    found = nvidia("--json", **settings)
    assert found.code == 1
    assert found.report["failed"].startswith(told)


def test_pairs_have_links_of_their_own_and_by_a_switch(nvidia: Probe) -> None:
    found = nvidia("--json", "--box-pairs=0:1 0:2", devices=3)
    assert found.code == 0, found.out
    near, far = found.report["pairs"]
    assert (near["channels"], far["channels"]) == (4, 2)
    assert near["bandwidth"] == int((256 << 20) / 0.0005 / 1e6)
    down = nvidia("--json", "--box-pairs=0:2", devices=3, FAKE_LINK_DOWN="2")
    assert down.report["pairs"][0]["channels"] == 1
    assert down.report["failed"].startswith("devices 0 and 2 have 1 channel between them that is up")


def test_no_device_is_to_be_seen(nvidia: Probe) -> None:
    all_found = [
        nvidia("--json", devices=0),
        nvidia("--json", FAKE_INIT="100", CUDA_VISIBLE_DEVICES=""),
    ]
    if not Path("/dev/nvidia0").exists():
        # As in an image for CUDA on a machine without devices.
        all_found.append(nvidia("--json", FAKE_INIT="999"))
    for found in all_found:
        assert found.code == 0
        assert [d["name"] for d in found.report["devices"]] == ["cpu"]
