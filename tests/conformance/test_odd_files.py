"""A FIFO, or another file that cannot be read to its end, among the checkpoints: named, and not waited for."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest
from troupe.checkpoint.files import Contents, contents, load_file
from troupe.checkpoint.library import CheckpointError

ODD = "it is no regular file (a FIFO, a socket or a device); remove it"


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


@pytest.mark.parametrize("which", [".troupe/steps/7", "7/.troupe-manifest.json"])
def test_a_marker_or_a_manifest(tmp_path, make_odd, which):
    (tmp_path / ".troupe/steps").mkdir(parents=True)
    (tmp_path / "7").mkdir()
    (tmp_path / ".troupe/steps/7").write_text("7\n1 4 00000000\n")
    manifest = {"world_size": 1, "shards": [{"name": "rank_0.pt"}]}
    (tmp_path / "7/.troupe-manifest.json").write_text(json.dumps(manifest))
    assert contents(str(tmp_path), 7) == Contents(1, ["rank_0.pt"])
    (tmp_path / which).unlink()
    make_odd(tmp_path / which)
    told = in_time(lambda: contents(str(tmp_path), 7))
    assert told.startswith(f"step 7 at {tmp_path} cannot be read: ")
    assert which in told
    assert ODD in told


def test_a_marker_of_an_earlier_version(tmp_path):
    (tmp_path / ".troupe/steps").mkdir(parents=True)
    (tmp_path / ".troupe/in_place/7").mkdir(parents=True)
    (tmp_path / ".troupe/steps/7").write_text(".")
    manifest = {"world_size": 2, "shards": [{"name": "a.pt"}, {"name": "b.pt"}]}
    (tmp_path / ".troupe/in_place/7/.troupe-manifest.json").write_text(json.dumps(manifest))
    assert contents(str(tmp_path), 7) == Contents(2, ["a.pt", "b.pt"])
