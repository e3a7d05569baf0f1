"""What cannot be saved or read by torch.distributed.checkpoint: the line names rank, file and step, and nothing is lost."""

from __future__ import annotations

import os
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import CheckpointException

from troupe.checkpoint import CheckpointError, DdpCheckpointer, StorageType
from troupe.checkpoint.dcp import DcpCheckpointer
from troupe.checkpoint.dcp.metadata import read

MEMORY = StorageType.MEMORY


def state(value: float = 1.0) -> dict[str, Any]:
    return {"model": {"w": torch.full((50, 40), value), "b": torch.full((7,), value)}, "step": int(value)}


def loaded(checkpointer: DcpCheckpointer, path: Path | None = None) -> dict[str, Any]:
    found = state(-1.0)
    reader = checkpointer.get_storage_reader()
    assert reader
    dcp.load(found, storage_reader=reader, checkpoint_id=path and str(path), no_dist=True)
    return found


def holds(checkpointer: DcpCheckpointer, value: float, path: Path | None = None) -> None:
    found = loaded(checkpointer, path)
    assert torch.equal(found["model"]["w"], state(value)["model"]["w"]) and found["step"] == value


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """With step 1 on the disk."""
    with DcpCheckpointer(tmp_path / "c") as checkpointer:
        assert checkpointer.save(1, state())
        assert checkpointer.wait_latest_checkpoint(60)
    return tmp_path / "c"


@pytest.fixture
def checkpointer(place: Path) -> Iterator[DcpCheckpointer]:
    with DcpCheckpointer(place) as made:
        assert made.save(2, state(2.0), storage_type=MEMORY)
        yield made


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:500])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def as_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("name", "damage", "why"),
    [
        ("__0_0.distcp", cut, r"it has 500 bytes, and \.metadata names bytes up to \d+"),
        ("__0_0.distcp", flip, "CRC-32 is not the one"),
        ("__0_0.distcp", Path.unlink, "No such file"),
        ("__0_0.distcp", as_fifo, "no regular file"),
        (".metadata", Path.unlink, "No such file"),
        (".metadata", cut, "truncated|ran out of input|unpickling"),
        (".metadata", lambda file: file.write_bytes(b""), "Ran out of input"),
    ],
)
def test_a_damaged_directory_is_named_with_its_file_rank_and_step(
    checkpointer: DcpCheckpointer, place: Path, name: str, damage: Callable[[Path], object], why: str
):
    damage(place / "1" / name)
    with pytest.raises(CheckpointException) as raised:
        loaded(checkpointer, place / "1")
    text = str(raised.value)
    assert "rank 0" in text and name in text and "step 1" in text
    assert re.search(why, text), text
    holds(checkpointer, 2.0)


def test_steps_of_other_tools_are_read_where_they_are_pytorchs_and_else_named(
    checkpointer: DcpCheckpointer, place: Path, tmp_path: Path
):
    dcp.save(state(5.0), checkpoint_id=str(tmp_path / "theirs"), no_dist=True)
    holds(checkpointer, 5.0, tmp_path / "theirs")
    with DdpCheckpointer(tmp_path / "ddp") as ddp:
        assert ddp.save_checkpoint(3, state()) and ddp.wait_latest_checkpoint(60)
    with pytest.raises(CheckpointException, match=r"ddp/3/\.metadata: No such file"):
        loaded(checkpointer, tmp_path / "ddp/3")
    with (
        DcpCheckpointer(tmp_path / "ddp") as other,
        pytest.raises(CheckpointException, match=r"step 3 in memory has no \.metadata at any rank"),
    ):
        loaded(other)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


@pytest.mark.parametrize(
    "content", [pickle.dumps(Evil()), pickle.dumps({"a": 1}), pickle.dumps(getattr), b"\x80\x05", b""]
)
def test_what_is_no_metadata_calls_nothing(content: bytes):
    with pytest.raises(CheckpointError, match=r"^rank 3: its \.metadata: "):
        read(content, "rank 3: its .metadata")


def test_a_state_that_cannot_be_pickled_costs_that_save_alone(checkpointer: DcpCheckpointer):
    bad = state(3.0) | {"lock": threading.Lock()}
    with pytest.raises(CheckpointException, match="cannot pickle"):
        checkpointer.save(3, bad, storage_type=MEMORY)
    holds(checkpointer, 2.0)
    fine = state(4.0) | {"lock": None}
    assert checkpointer.save(4, fine, storage_type=MEMORY)
    assert checkpointer.save(5, state(5.0) | {"lock": None}, storage_type=MEMORY)
    holds(checkpointer, 5.0)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, "the step is not known: give get_storage_writer a step"),
        ({"checkpoint_id": "/elsewhere/5"}, "'/elsewhere/5' is not .*/<directory>"),
        ({"checkpoint_id": "{place}/last"}, "'.*/last' does not end with the number of the step"),
        ({"checkpoint_id": "{place}/.5"}, "begins with a dot"),
        ({"checkpoint_id": "{place}/5", "use_collectives": False}, "use_collectives=False"),
    ],
)
def test_a_save_that_cannot_be_says_why(checkpointer: DcpCheckpointer, how: dict[str, Any], why: str):
    place = checkpointer.place
    how = {key: value.format(place=place) if isinstance(value, str) else value for key, value in how.items()}
    writer = checkpointer.get_storage_writer(storage_type=MEMORY)
    with pytest.raises((CheckpointException, ValueError), match=why):
        dcp.save(state(), storage_writer=writer, no_dist=True, **how)
    holds(checkpointer, 2.0)


def test_directories_have_names_of_the_programs_choice(checkpointer: DcpCheckpointer, place: Path):
    assert checkpointer.save(7, state(7.0), str(place / "epoch-7"))
    assert checkpointer.wait_latest_checkpoint(60)
    found = state(-1.0)
    dcp.load(found, checkpoint_id=str(place / "epoch-7"), no_dist=True)
    assert found["step"] == 7
    checkpointer.close()
    with DcpCheckpointer(place) as another:  # of a world of another size, which reads it from there
        assert another.found_file(7)[0] == "epoch-7"
        assert another.found_file(8)[0] == "8"


def test_views_and_odd_tensors_are_what_pytorch_reads(checkpointer: DcpCheckpointer, place: Path):
    base = torch.arange(1000.0)
    tensors = {
        "part": base[10:20],
        "other part": base[500:],
        "column": base.view(10, 100)[:, 3],
        "transposed": torch.randn(4, 6).t(),
        "expanded": torch.randn(3, 1).expand(3, 5),
        "empty": torch.empty(0, 3),
        "empty part": base[3:3],
        "scalar": torch.tensor(3.5),
        "bool": torch.tensor([True, False]),
        "bf16": torch.randn(5).bfloat16(),
        "f8": torch.randn(8).to(torch.float8_e4m3fn),
        "u16": torch.ones(3, dtype=torch.uint16),
        "conjugated": torch.randn(4, dtype=torch.complex64).conj(),
        "negative": torch.randn(4, dtype=torch.complex64).conj().imag,
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    assert checkpointer.save(8, {"t": tensors}) and checkpointer.wait_latest_checkpoint(60)
    again = {name: torch.zeros_like(tensor, requires_grad=False) for name, tensor in tensors.items()}
    dcp.load({"t": again}, checkpoint_id=str(place / "8"), no_dist=True)
    for name, tensor in tensors.items():
        assert torch.equal(again[name].float() if name == "f8" else again[name], tensor.float() if name == "f8" else tensor), name
    metadata = dcp.FileSystemReader(place / "8").read_metadata()
    sizes = {index.fqn: info.length for index, info in metadata.storage_data.items()}
    assert max(sizes.values()) < 4000  # no file holds the storage that a view is of
