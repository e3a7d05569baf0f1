"""What lies in a checkpoint directory is the truth, however it came there; and a run leaves alone what is not its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from troupe.checkpoint import CheckpointError, DdpCheckpointer, KeepLatestStep, complete_steps
from troupe.checkpoint import checkpointer as module
from troupe.checkpoint import ranks


def new_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that begins now."""
    monkeypatch.setattr(module.Checkpointer, "_made_by", 0)


def save(place: Path, *steps: int, load: bool = True, keep: int = 0, path: str = "") -> int | None:
    """Of a run: what it began with."""
    rule = {"deletion_strategy": KeepLatestStep(keep, place)} if keep else {}
    with DdpCheckpointer(place, **rule) as checkpointer:
        begun = checkpointer.load_checkpoint().get("step") if load else None
        for step in steps:
            state = {"step": step, "weights": torch.full((10,), float(step))}
            assert checkpointer.save_checkpoint(step, state, path.format(step))
            assert checkpointer.wait_latest_checkpoint(60), step
    return begun


def loaded(place: Path) -> int | None:
    with DdpCheckpointer(place) as checkpointer:
        return checkpointer.load_checkpoint().get("step")


def copied(place: Path, to: Path) -> Path:
    """`rsync -a --exclude='.*'`"""
    return Path(shutil.copytree(place, to, ignore=shutil.ignore_patterns(".*")))


def test_a_run_that_begins_anew_leaves_the_steps_of_the_run_before_it(tmp_path, monkeypatch, caplog):
    save(tmp_path, 98_000, 99_000, 100_000, keep=2)
    new_run(monkeypatch)
    save(tmp_path, 10, 20, 30, load=False, keep=1)
    assert complete_steps(str(tmp_path)) == [30, 100_000, 99_000]
    told = [text for text in caplog.messages if "not gone on from" in text]
    assert told == [
        f"{tmp_path} holds 2 steps (100000, 99000) of runs that this one has not gone on from: "
        "the deletion strategy leaves them, and no save of this run takes the place of one"
    ]
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(99_000, {"step": 99_000})
        assert not checkpointer.wait_latest_checkpoint(60)
    assert "step 99000 is in '99000' by another run" in caplog.text
    new_run(monkeypatch)
    assert save(tmp_path, 40, 50, keep=1) == 30
    assert complete_steps(str(tmp_path)) == [50, 100_000, 99_000]


def test_what_a_run_has_gone_on_from_goes_by_its_rule(tmp_path, monkeypatch, caplog):
    for steps in ((10, 20), (30,), (40, 50)):
        new_run(monkeypatch)
        save(tmp_path, *steps, keep=2)
    assert complete_steps(str(tmp_path)) == [50, 40]
    assert "not gone on from" not in caplog.text


@pytest.mark.parametrize("path", ["", "step-{}.pt", "checkpoint-{}/state.pt"])
def test_a_copy_without_hidden_names_is_gone_on_from(tmp_path, monkeypatch, path, caplog):
    old, new = tmp_path / "old", tmp_path / "new"
    where = str(old / path) if path else ""
    save(old, 10, 20, path=where)
    copied(old, new)
    assert not (new / ".troupe").exists()
    assert complete_steps(str(new)) == [20, 10]
    new_run(monkeypatch)
    assert save(new, 30, 40, keep=2, path=where.replace(str(old), str(new))) == 20
    assert complete_steps(str(new)) == [40, 30]
    assert "has not written" not in caplog.text
    # And one step alone, file by file.
    if path == "":
        shutil.copytree(new / "40", tmp_path / "one/40")
        assert loaded(tmp_path / "one") == 40


def test_a_copy_under_another_name_is_loaded_and_never_removed(tmp_path, monkeypatch):
    save(tmp_path, 10, 20)
    shutil.copytree(tmp_path / "10", tmp_path / "best")
    new_run(monkeypatch)
    save(tmp_path, 30, 40, keep=1)
    assert complete_steps(str(tmp_path)) == [40, 10]
    for name in ("40", "20"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    assert loaded(tmp_path) == 10


@pytest.mark.parametrize("gone", ["20/troupe-manifest.json", "20", ".troupe/steps/20 20"])
def test_a_newest_step_that_is_gone_is_told(tmp_path, gone, caplog):
    save(tmp_path, 10, 20)
    for name in gone.split():
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert loaded(tmp_path) == 10
    told = [text for text in caplog.messages if "step 20" in text and "'dlrover_latest.txt' names it" in text]
    assert len(told) == 1, caplog.messages


def test_retention_follows_no_link_to_the_steps_of_another_run(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    save(first, 3, 4, 5)
    second.mkdir()
    for step in (3, 4, 5):
        (second / str(step)).symlink_to(first / str(step))
    new_run(monkeypatch)
    assert save(second, 6, 7, keep=1) == 5
    assert complete_steps(str(second)) == [7]
    assert complete_steps(str(first)) == [5, 4, 3]
    assert loaded(first) == 5
    # Nor is anything written through one.
    (second / "8").symlink_to(first / "5")
    with DdpCheckpointer(second) as checkpointer:
        checkpointer.load_checkpoint()
        assert checkpointer.save_checkpoint(8, {"step": 8})
        assert not checkpointer.wait_latest_checkpoint(60)
    assert loaded(first) == 5


def test_a_number_that_retention_has_just_removed_can_be_saved_again(tmp_path):
    save(tmp_path, 10, 11, 12, 3, 4, 12, 3, 4, 12, keep=2)
    assert complete_steps(str(tmp_path)) == [12, 4]


def test_a_link_to_another_directory_than_before_has_that_ones_steps(tmp_path, monkeypatch):
    link = tmp_path / "current"
    for stage, begun in (("first", None), ("second", None), ("first", 2)):
        link.unlink(missing_ok=True)
        (tmp_path / stage).mkdir(exist_ok=True)
        link.symlink_to(stage)
        new_run(monkeypatch)
        assert save(link, *([] if begun else [1, 2])) == begun
    # Where it led when it was opened a checkpointer saves.
    with DdpCheckpointer(link) as checkpointer:
        checkpointer.load_checkpoint()
        link.unlink()
        link.symlink_to("second")
        assert checkpointer.save_checkpoint(3, {"step": 3}, str(link / "3" / "state.pt"))
        assert checkpointer.wait_latest_checkpoint(60)
    assert complete_steps(str(tmp_path / "first")) == [3, 2, 1]
    assert complete_steps(str(tmp_path / "second")) == [2, 1]


def test_a_run_whose_clock_was_ahead_closes_no_directory(tmp_path, monkeypatch):
    now = time.time_ns
    monkeypatch.setattr(ranks.time, "time_ns", lambda: now() + 365 * 24 * 3600 * 10**9)
    save(tmp_path, 10, 20)
    monkeypatch.setattr(ranks.time, "time_ns", now)
    for begun, steps in ((20, (30, 40)), (40, (50,))):
        new_run(monkeypatch)
        assert save(tmp_path, *steps, keep=2) == begun
    assert complete_steps(str(tmp_path)) == [50, 40]


READ = """
import os, sys
from troupe.checkpoint import CheckpointError, DdpCheckpointer
os.setgid(65534); os.setuid(65534)  # root may write anywhere
with DdpCheckpointer(sys.argv[1]) as checkpointer:
    print(checkpointer.load_checkpoint()["step"])
    try:
        checkpointer.save_checkpoint(30, {"step": 30})
    except CheckpointError as error:
        print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_users_directory_is_loaded_from(tmp_path):
    place = tmp_path / "c"
    save(place, 10, 20)
    for path in (place, *tmp_path.parents, tmp_path):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(0o755)
    before = sorted(place.rglob("*"))
    done = subprocess.run([sys.executable, "-c", READ, str(place)], capture_output=True, text=True)
    assert done.stdout == f"20\nstep 30 cannot be saved: rank 0: checkpoint_dir: {place} cannot be written: Permission denied\n", done.stderr
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.write_text("a file"), "it is no directory"),
        (lambda path: path.symlink_to("nowhere"), "it is a link to nowhere, which is not there"),
        (lambda path: path.symlink_to("/dev/null"), "it is no directory"),
    ],
)
def test_a_place_that_is_no_directory_is_named(tmp_path, make, why):
    make(tmp_path / "place")
    for place in (tmp_path / "place", tmp_path / "place/below"):
        with pytest.raises(CheckpointError) as told:
            DdpCheckpointer(place)
        of = why if place.name == "place" else why.replace("it is", f"{tmp_path / 'place'} is", 1)
        assert str(told.value).endswith(f"checkpoint_dir: {place} cannot be written: {of}"), told.value
        assert "remove" not in str(told.value)


def test_no_one_is_told_to_remove_a_device():
    with DdpCheckpointer("/tmp") as checkpointer, pytest.raises(CheckpointError) as told:
        checkpointer.load_checkpoint("/dev/null")
    assert str(told.value) == "/dev/null: it is no regular file (a FIFO, a socket or a device)"


def manifest(of: Path, **changes: Any) -> None:
    import zlib

    said = json.loads(of.read_text())
    del said["crc32"]
    text = json.dumps({**said, **changes})[:-1] + ","
    of.write_text(f'{text}"crc32":{zlib.crc32(text.encode())}}}\n')


@pytest.mark.parametrize("marked", [True, False])
def test_a_manifest_of_another_version_is_told_and_stays(tmp_path, marked, caplog):
    save(tmp_path, 10, 20)
    manifest(tmp_path / "20/troupe-manifest.json", troupe_checkpoint=7)
    if not marked:
        shutil.rmtree(tmp_path / ".troupe")
    assert loaded(tmp_path) == 10
    assert "another version of Troupe: it is in format 7, and this one reads 2" in caplog.text


def test_two_jobs_in_one_directory_are_told_once(tmp_path, monkeypatch, caplog):
    with DdpCheckpointer(tmp_path) as older:
        assert older.save_checkpoint(10, {"step": 10}) and older.wait_latest_checkpoint(60)
        new_run(monkeypatch)
        save(tmp_path, 1010)
        for step in (20, 30, 40):
            assert older.save_checkpoint(step, {"step": step})
            assert not older.wait_latest_checkpoint(60)
    told = [text for text in caplog.messages if "saves nothing here any more" in text]
    assert len(told) == 1, told
    assert loaded(tmp_path) == 1010
