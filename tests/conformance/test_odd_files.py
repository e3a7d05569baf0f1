"""A FIFO, or another file that cannot be read to its end, among the checkpoints: named, and not waited for."""

from __future__ import annotations

import os
import socket
import threading

import pytest
from troupe.checkpoint import CheckpointError, DdpCheckpointer
from troupe.checkpoint.files import load_file

ODD = "it is no regular file (a FIFO, a socket or a device)"


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def in_time(call):
    """Its exception; a call that still waits after 10 s fails the test."""
    told = []

    def run():
        try:
            call()
        except CheckpointError as error:
            told.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits"
    assert len(told) == 1
    return told[0]


@pytest.fixture(params=[os.mkfifo, make_socket])
def make_odd(request):
    return request.param


def test_a_file_to_load(tmp_path, make_odd):
    path = tmp_path / "state.pt"
    make_odd(path)
    told = in_time(lambda: load_file(str(path), weights_only=True, map_location=None))
    assert told == f"{path}: {ODD}"


def test_a_directory_to_load(tmp_path):
    told = in_time(lambda: load_file(str(tmp_path), weights_only=True, map_location=None))
    assert told == f"{tmp_path}: Is a directory"


@pytest.mark.parametrize(
    "which", [".troupe/steps/7", "7/troupe-manifest.json", "7/rank_0.pt", "dlrover_latest.txt"]
)
def test_among_the_steps_of_a_job(tmp_path, make_odd, which, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        for step in (5, 7):
            assert checkpointer.save_checkpoint(step, {"step": step})
            assert checkpointer.wait_latest_checkpoint(60)
    (tmp_path / which).unlink()
    make_odd(tmp_path / which)
    loaded = []

    def load():
        with DdpCheckpointer(tmp_path) as checkpointer:
            loaded.append(checkpointer.load_checkpoint())
        raise CheckpointError("it does not wait")

    assert in_time(load) == "it does not wait"
    is_cache = which in ("dlrover_latest.txt", ".troupe/steps/7")  # the manifest says all that they say
    assert loaded == [{"step": 7 if is_cache else 5}]
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == which.startswith("7/")
    if which == "7/troupe-manifest.json":
        assert told[0].startswith(
            f"{tmp_path}: training goes on from step 5, and other steps there were passed over: rank 0: step 7: "
        )


@pytest.mark.parametrize("which", ["7/troupe-manifest.json"])
def test_training_does_not_begin_anew_beside_a_damaged_step(tmp_path, which):
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(7, {"step": 7})
        assert checkpointer.wait_latest_checkpoint(60)
    there = (tmp_path / which).read_bytes()
    (tmp_path / which).write_bytes(there[:-1] + bytes([there[-1] ^ 1]))
    with (
        DdpCheckpointer(tmp_path) as checkpointer,
        pytest.raises(CheckpointError, match=f"no step at {tmp_path} can be read: rank 0: step 7: "),
    ):
        checkpointer.load_checkpoint()
