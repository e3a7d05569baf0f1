"""Devices that are looked at through PyTorch: a vendor's plug-in is put in the place of the real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Probe

# torch.npu over the processors: two devices, on which tensors are the host's.
PLUGIN = """
import torch, types
def to_host(device): return "cpu" if isinstance(device, str) and device.startswith("npu") else device
for name in ("zeros", "empty"):
    def made(*a, _real=getattr(torch, name), **k):
        return _real(*a, **{**k, "device": to_host(k.get("device"))})
    setattr(torch, name, made)
real = torch.Tensor.to
torch.Tensor.to = lambda self, *a, **k: real(self, *map(to_host, a), **k)
torch.npu = types.SimpleNamespace(
    device_count=lambda: 2, get_device_name=lambda index: "Ascend910B3",
    mem_get_info=lambda index: (60 << 30, 64 << 30), synchronize=lambda index: None,
)
product, made = torch.Tensor.__matmul__, {}
def matmul(a, b):  # processors take seconds for one
    if a.dtype != torch.bfloat16: return product(a, b)
    if (id(a), id(b)) not in made: made[id(a), id(b)] = product(a.float(), b.float()).to(a.dtype)
    return made[id(a), id(b)]
torch.Tensor.__matmul__ = matmul
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "torch_npu.py").write_text(PLUGIN)
    return tmp_path


def by_torch(probe: Probe, folder: Path, *words: str, kind: str = "npu,torch_npu"):
    return probe(
        "--json", *words, PYTHONPATH=str(folder), TROUPE_PROBE_TORCH=f"{kind},{sys.executable}"
    )


def test_devices_compute_and_copy(probe: Probe, plugin: Path) -> None:
    found = by_torch(
        probe, plugin, "--box-pairs=0:1", "--min-bandwidth=1", "--min-channels=0", "--within=100"
    )
    assert found.code == 0, found.out + found.errors
    assert [device["name"] for device in found.report["devices"]] == ["Ascend910B3"] * 2
    assert all(device["compute_us"] > 0 for device in found.report["devices"])
    (pair,) = found.report["pairs"]
    assert pair["bandwidth"] > 1 and pair["failed"] == ""


def test_links_that_are_wanted_are_not_guessed(probe: Probe, plugin: Path) -> None:
    found = by_torch(probe, plugin, "--box-pairs=0:1", "--min-bandwidth=1", "--within=100")
    assert found.code == 1
    assert "give --min-channels 0" in found.report["failed"]


def test_a_device_that_computes_wrongly_fails(probe: Probe, plugin: Path) -> None:
    file = plugin / "torch_npu.py"
    file.write_text(file.read_text().replace("to(a.dtype)", "to(a.dtype) + 1"))
    found = by_torch(probe, plugin, "--within=100")
    assert found.code == 1
    assert found.report["failed"] == "device 0: a product of matrices is wrong (and 1 more)"


def test_a_plug_in_that_is_missing_is_named_and_nothing_else_is_looked_at(
    probe: Probe, tmp_path: Path
) -> None:
    found = by_torch(probe, tmp_path)
    assert found.code == 1
    assert found.report["failed"].endswith(
        "cannot look at devices by torch.npu: ModuleNotFoundError: No module named 'torch_npu'; install what is "
        "missing there, or name another Python (--python)"
    )
    assert found.report["devices"] == []


def test_no_device_is_a_failure(probe: Probe, plugin: Path) -> None:
    file = plugin / "torch_npu.py"
    file.write_text(file.read_text().replace("lambda: 2", "lambda: 0"))
    assert by_torch(probe, plugin).report["failed"] == "this node has no device at all"
