"""The checkpointer's decisions, and a few ranks that save and load together. Where there is no launcher, disks are real."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from few_ranks import Job, said

from troupe.checkpoint import (
    CheckpointError,
    DdpCheckpointer,
    KeepLatestStep,
    KeepStepInterval,
    StorageType,
    complete_steps,
)
from troupe.checkpoint.files import load_file, placed
from troupe.checkpoint.memory import PLACE_BITS
from troupe.checkpoint.ranks import begun_now
from troupe.checkpoint.retention import kept

MEMORY, DISK = StorageType.MEMORY, StorageType.DISK
MIB = 1 << 20


# ---- Decisions ----


def test_which_steps_a_strategy_keeps():
    assert kept(None, "/a") == (0, 0)
    assert kept(KeepLatestStep(3, "/a/"), "/a") == (3, 0)
    assert kept(KeepStepInterval(50, Path("/a/b/..")), "/a") == (0, 50)
    with pytest.raises(ValueError, match="it is for /b, and the checkpoints are in /a"):
        kept(KeepLatestStep(3, "/b"), "/a")
    with pytest.raises(ValueError, match="a str is code of its own"):
        kept("latest", "/a")
    with pytest.raises(ValueError, match="max_to_keep is 0; it is a whole number from 1 to"):
        KeepLatestStep(0, "/a")
    with pytest.raises(ValueError, match="keep_interval is 2.5"):
        KeepStepInterval(2.5, "/a")


def test_what_a_path_may_be():
    assert placed("/a", "/a/best/model.pt") == ("best", "model.pt")
    assert placed("/a", "/a/./100/../7/x") == ("7", "x")
    assert placed("/a", "/a/checkpoint-100.pt") == (".", "checkpoint-100.pt")
    assert placed("/a", "/a/./x/../y/") == (".", "y")
    assert placed("/", "/x") == (".", "x")
    for wrong in ("/a", "/a/b/c/d", "/b/c/d", "b/c", "/a/../b/c", "/a/../b", "/"):
        with pytest.raises(ValueError, match="is neither /a/<file> nor /a/<directory>/<file>"):
            placed("/a", wrong)
    for hidden in ("/a/.troupe/x", "/a/b/.x", f"/a/{'b' * 256}/x", "/a/.x", f"/a/{'b' * 256}"):
        with pytest.raises(ValueError, match="begins with a dot or has more than 255 bytes"):
            placed("/a", hidden)
    with pytest.raises(ValueError, match="'' is empty"):
        placed("/", "/")


def test_a_file_that_cannot_be_loaded_is_named(tmp_path):
    path = tmp_path / "state.pt"

    def load():
        return load_file(str(path), weights_only=True, map_location=None)

    with pytest.raises(CheckpointError, match=r"state.pt: No such file"):
        load()
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"state.pt: it is empty"):
        load()
    path.write_text("weights")
    with pytest.raises(CheckpointError, match=r"state.pt: not an archive of torch.save"):
        load()
    torch.save({"x": torch.full((1000,), 3.0)}, path)
    assert load()["x"][999] == 3.0
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-100])
    with pytest.raises(CheckpointError, match=r"state.pt: not an archive of torch.save"):
        load()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state.pt: state/data/0 is damaged"):
        load()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"local_shard_num": 0}, "local_shard_num is 0"),
        ({"global_shard_num": 2}, "of 1 ranks only 1 save"),
        ({"save_timeout": 0}, "save_timeout is 0"),
        ({"replica_count": 9}, "replica_count is 9; it is 0 to 5"),
        ({"deletion_strategy": KeepLatestStep(1, "/elsewhere")}, "it is for /elsewhere"),
    ],
)
def test_wrong_arguments_are_refused_in_a_line(arguments, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        DdpCheckpointer(tmp_path, **arguments)


# ---- One process without a launcher ----


def state_of(step: int) -> dict:
    return {"step": step, "x": torch.full((MIB // 4,), float(step))}


def is_state_of(state: dict, step: int) -> bool:
    return state["step"] == step and bool((state["x"] == step).all())


def too_large() -> dict:
    """A state that no memory has room for; its own pages do not exist before the first write."""
    nobody_wrote = mmap.mmap(-1, 1 << 44, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
    return {"x": torch.frombuffer(nobody_wrote, dtype=torch.float32)}


@pytest.fixture(params=[False, True], ids=["copied", "copy on write"])
def checkpointer(request, tmp_path):
    keep = KeepLatestStep(2, tmp_path)
    try:
        made = DdpCheckpointer(tmp_path, deletion_strategy=keep, copy_on_write=request.param)
    except CheckpointError as refused:
        pytest.skip(str(refused))
    with made:
        yield made


def test_disk_and_memory_right_after_it_keep_both(checkpointer, tmp_path):
    with checkpointer:
        assert checkpointer.load_checkpoint() == {}
        assert checkpointer.wait_latest_checkpoint(0)
        for step in range(1, 6):
            assert checkpointer.save_checkpoint(step, state_of(step))
            assert checkpointer.save_checkpoint(step + 100, state_of(step + 100), "", MEMORY)
            assert checkpointer.wait_latest_checkpoint(60)
            assert is_state_of(checkpointer.load_checkpoint(), step + 100)
    assert complete_steps(str(tmp_path)) == [5, 4]
    assert (tmp_path / "dlrover_latest.txt").read_text() == "5"
    assert is_state_of(torch.load(tmp_path / "5" / "rank_0.pt"), 5)


def test_what_was_saved_last_is_whole_after_the_end_and_comes_back(tmp_path):
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(3, state_of(3))
        assert checkpointer.save_checkpoint(7, state_of(7), path=str(tmp_path / "best/model.pt"))
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert is_state_of(checkpointer.load_checkpoint(), 7)
        assert is_state_of(checkpointer.load_checkpoint(str(tmp_path / "3/rank_0.pt")), 3)


def test_steps_in_the_place_itself(tmp_path):
    (tmp_path / "base.pt").write_text("theirs")
    keep = KeepLatestStep(2, tmp_path)
    with DdpCheckpointer(tmp_path, deletion_strategy=keep) as checkpointer:
        for step in (100, 200, 300):
            path = str(tmp_path / f"checkpoint-{step}.pt")
            assert checkpointer.save_checkpoint(step, state_of(step), path)
            assert checkpointer.wait_latest_checkpoint(60)
            assert is_state_of(torch.load(path), step)
    assert complete_steps(str(tmp_path)) == [300, 200]
    manifest = json.loads((tmp_path / "troupe-manifest-300.json").read_text())
    assert [shard["name"] for shard in manifest["shards"]] == ["checkpoint-300.pt"]
    assert (tmp_path / "dlrover_latest.txt").read_text() == "300"
    assert sorted(name.name for name in tmp_path.iterdir()) == [
        ".troupe", "base.pt", "checkpoint-200.pt", "checkpoint-300.pt", "dlrover_latest.txt",
        "troupe-manifest-200.json", "troupe-manifest-300.json",
    ]  # fmt: skip
    assert (tmp_path / "base.pt").read_text() == "theirs"
    code = "import sys; from troupe.checkpoint import DdpCheckpointer as C; print(C(sys.argv[1]).load_checkpoint()['step'])"
    new = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, check=True)
    assert new.stdout == b"300\n"


def test_a_file_in_the_place_is_not_written_over(tmp_path, caplog):
    (tmp_path / "base.pt").write_text("theirs")

    def refused(step: int, file: str) -> str:
        caplog.clear()
        assert checkpointer.save_checkpoint(step, state_of(step), str(tmp_path / file))
        assert not checkpointer.wait_latest_checkpoint(60)
        return caplog.text

    with DdpCheckpointer(tmp_path, deletion_strategy=KeepLatestStep(1, tmp_path)) as checkpointer:
        assert checkpointer.save_checkpoint(1, state_of(1), str(tmp_path / "model.pt"))
        line = "step 2 cannot be in 'model.pt': step 1 is in the file 'model.pt'; name files by their step"
        assert line in refused(2, "model.pt")
        assert "step 3 cannot be in 'base.pt': it is there already" in refused(3, "base.pt")
        assert "'latest' cannot be the name of a step's file" in refused(4, "latest")
        assert complete_steps(str(tmp_path)) == [1]
        assert is_state_of(torch.load(tmp_path / "model.pt"), 1)
        # A later step takes the older ones along, and nothing that is not theirs.
        assert checkpointer.save_checkpoint(5, state_of(5), str(tmp_path / "other.pt"))
        assert checkpointer.wait_latest_checkpoint(60)
    assert not (tmp_path / "model.pt").exists()
    assert (tmp_path / "base.pt").read_text() == "theirs"


SAVES_AND_GOES = """
import os, signal, sys, torch
from troupe.checkpoint import DdpCheckpointer
checkpointer = DdpCheckpointer(sys.argv[1])
assert checkpointer.save_checkpoint(4, {"x": torch.ones(8 << 20)})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_right_after_saving_leaves_a_complete_step(tmp_path):
    gone = subprocess.run([sys.executable, "-c", SAVES_AND_GOES, str(tmp_path)], stderr=subprocess.PIPE)
    assert gone.returncode == -signal.SIGKILL, gone.stderr
    deadline = time.monotonic() + 30
    while complete_steps(str(tmp_path)) != [4]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_step_that_cannot_be_written_is_told(tmp_path, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(1, state_of(1))
        assert checkpointer.wait_latest_checkpoint(30)
        (tmp_path / "2").write_text("in the way")
        assert checkpointer.save_checkpoint(2, state_of(2))
        assert not checkpointer.wait_latest_checkpoint(30)
        assert "rank 0: the last checkpoint was not kept: rank 0: " in caplog.text
    assert complete_steps(str(tmp_path)) == [1]


def test_a_damaged_step_is_told_and_the_one_before_it_taken(tmp_path, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        for step in (3, 7):
            assert checkpointer.save_checkpoint(step, state_of(step))
    with open(tmp_path / "7/rank_0.pt", "r+b") as file:
        file.seek(MIB // 2)
        file.write(b"?")
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert is_state_of(checkpointer.load_checkpoint(), 3)
        assert "step 7 was not to be had; another source of it or an older step" in caplog.text
        os.remove(tmp_path / "3/rank_0.pt")
    with DdpCheckpointer(tmp_path) as checkpointer:
        with pytest.raises(CheckpointError, match=f"no step at {tmp_path} can be read: rank 0: "):
            checkpointer.load_checkpoint()


def test_what_is_wrong_with_a_save_is_raised_and_the_state_before_it_stays(tmp_path, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(1, state_of(1), storage_type=MEMORY)
        for step in (-1, 2**63, 1.0, True):
            with pytest.raises(ValueError, match="step is .*; it is a whole number from 0 to"):
                checkpointer.save_checkpoint(step, state_of(2))
        with pytest.raises(ValueError, match="storage_type is 'disk'"):
            checkpointer.save_checkpoint(2, state_of(2), storage_type="disk")
        with pytest.raises(ValueError, match="is neither"):
            checkpointer.save_checkpoint(2, state_of(2), path="/tmp/x.pt")
        with pytest.raises((AttributeError, TypeError), match="lambda|local"):
            checkpointer.save_checkpoint(2, {"x": lambda: 0})
        assert not checkpointer.save_checkpoint(2, too_large())
        assert "rank 0: step 2 is not saved: rank 0: a snapshot of this state needs 17039" in caplog.text
        assert is_state_of(checkpointer.load_checkpoint(), 1)


def test_a_job_that_does_not_load_saves_what_is_newest_from_then_on(tmp_path):
    for steps in ((10, 20), (5,)):
        with DdpCheckpointer(tmp_path) as checkpointer:
            for step in steps:
                assert checkpointer.save_checkpoint(step, state_of(step))
    assert complete_steps(str(tmp_path)) == [5, 20, 10]
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert is_state_of(checkpointer.load_checkpoint(), 5)


def test_a_directory_that_cannot_be_written_is_named_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=f"rank 0: checkpoint_dir: {tmp_path}/file/x cannot"):
        DdpCheckpointer(tmp_path / "file/x")


# ---- A few ranks ----


@pytest.fixture
def job(tmp_path):
    jobs = []

    def made(*nodes: int, launched: bool = True) -> Job:
        (tmp_path / str(len(jobs))).mkdir()
        jobs.append(Job(tmp_path / str(len(jobs)), nodes, launched))
        return jobs[-1]

    yield made
    for one in jobs:
        one.close()


def disagreeing(rank: int, place: str) -> dict:
    """What each rank hears when the other one fails or does something else."""
    checkpointer = DdpCheckpointer(place)
    heard = {}

    def heard_of(what: str, save) -> None:
        said.lines.clear()
        try:
            heard[what] = (save(), *said.lines)
        except ValueError as error:
            heard[what] = (str(error), *said.lines)

    save = checkpointer.save_checkpoint
    heard_of("same", lambda: save(2**62 + 1, state_of(1), "", MEMORY))
    heard_of("steps", lambda: save(2**53 + rank, state_of(1), "", MEMORY))
    heard_of("storages", lambda: save(4, state_of(4), "", [MEMORY, DISK][rank]))
    heard_of("failed", lambda: save(5, [state_of(5), too_large()][rank], "", MEMORY))
    heard_of("wrong", lambda: save(6, state_of(6), ["", "/tmp/x"][rank], MEMORY))
    heard_of("after", lambda: save(7, state_of(7), "", MEMORY))
    return heard


def test_a_save_that_fails_at_one_rank_is_none_at_any(job, tmp_path):
    mine, theirs = job(1, 1).run(disagreeing, str(tmp_path / "c"))
    assert mine["same"] == theirs["same"] == (True,)
    said_of_steps = (
        "step {} is not saved: rank 0: would save step 9007199254740992 to MEMORY as 9007199254740992/rank_0.pt; "
        "rank 1: would save step 9007199254740993 to MEMORY"
    )
    assert mine["steps"] == (False, f"rank 0: {said_of_steps.format(2**53)}")
    assert theirs["steps"] == (False, f"rank 1: {said_of_steps.format(2**53 + 1)}")
    assert "rank 0: would save step 4 to MEMORY as 4/rank_0.pt; rank 1: would save" in mine["storages"][1]
    for rank, failed in enumerate((mine["failed"], theirs["failed"])):
        assert failed[0] is False
        assert failed[1].startswith(f"rank {rank}: step 5 is not saved: rank 1: a snapshot of this state needs")
    assert mine["wrong"][0] is False and "rank 1: ValueError: path: '/tmp/x'" in mine["wrong"][1]
    assert "is neither" in theirs["wrong"][0]
    assert mine["after"] == theirs["after"] == (True,)


def saving(rank: int, place: str, steps: list[list[int]], arguments: dict) -> list[bool]:
    checkpointer = DdpCheckpointer(place, **arguments)
    kept = [checkpointer.save_checkpoint(s, state_of(s + rank), "", MEMORY) for s in steps[0]]
    for step in steps[1 + rank]:  # alone, as if the others had been killed before they came to it
        assert checkpointer._saves
        checkpointer._saves.keep(checkpointer.me, (100 + step) << PLACE_BITS, step, state_of(step + rank), None, False)
    return kept


def loading(rank: int, place: str, arguments: dict) -> tuple:
    checkpointer = DdpCheckpointer(place, **arguments)
    try:
        state = checkpointer.load_checkpoint()
    except CheckpointError as error:
        return (str(error), *said.lines)
    x = set(state["x"].tolist()) if state else None
    again = checkpointer.save_checkpoint(1000, state_of(1000), "", MEMORY)
    return (state and state["step"], x, again, *said.lines)


ONE = {"global_shard_num": 1}


def test_a_node_that_was_lost_gets_the_state_from_a_peer_and_all_ranks_see_it(job, tmp_path):
    j, place = job(2, 2), str(tmp_path / "c")
    assert j.run(loading, place, ONE)[3][0] == {}
    j = job(2, 2)
    assert j.run(saving, place, [[5, 6], [], [], [], []], ONE) == [[True, True]] * 4
    j.loses(1)
    # Rank r's image of step 6 holds 6 + r: what came from where can be seen.
    line = "rank {}: step 6 comes from {}"
    mine, one, two, three = j.run(loading, place, ONE)
    assert mine == (6, {6.0}, True, line.format(0, "memory"))
    assert one == (6, {6.0}, True, line.format(1, "memory"))  # of rank 0, which it sees
    assert two == (6, {6.0}, True, line.format(2, "a peer, rank 0"))
    assert three == (6, {6.0}, True, line.format(3, "memory"))


def beginning_with(rank: int, place: str, path: str) -> list[int]:
    """What a script does whose command line names the file that it begins with."""
    checkpointer = DdpCheckpointer(place)
    steps = [checkpointer.load_checkpoint(path)["step"]]
    steps.append(checkpointer.load_checkpoint(path)["step"])
    assert checkpointer.save_checkpoint(steps[0] + 1, state_of(steps[0] + 1), "", MEMORY)
    steps.append(checkpointer.load_checkpoint(path)["step"])
    steps.append(checkpointer.load_checkpoint()["step"])
    return steps


def test_workers_that_are_started_again_do_not_begin_again(job, tmp_path):
    place, path = tmp_path / "c", str(tmp_path / "pretrained.pt")
    torch.save(state_of(5), path)
    with DdpCheckpointer(place) as checkpointer:  # of a job before this one
        assert checkpointer.save_checkpoint(77, state_of(77))
    j = job(2, 1)
    j.generation = begun_now()  # as of its master
    assert j.run(beginning_with, str(place), path) == [[5, 5, 5, 6]] * 3
    assert j.run(beginning_with, str(place), path) == [[6, 5, 5, 7]] * 3
    j.loses(0)
    assert j.run(beginning_with, str(place), path) == [[7, 5, 5, 8]] * 3


def test_an_old_image_in_memory_is_nothing_to_a_newer_step_on_the_disk(job, tmp_path):
    """As of a node that was away while the job went on without it, and went back to a lower step."""
    place = tmp_path / "c"
    j = job(1, 1)
    assert j.run(saving, str(place), [[100], [], []], ONE) == [[True]] * 2
    with DdpCheckpointer(place) as checkpointer:  # its generation is later than those of the job
        assert checkpointer.save_checkpoint(50, state_of(50))
    for rank, found in enumerate(j.run(loading, str(place), ONE)):
        assert found[:2] == (50, {50.0}), rank
        assert found[-1] == f"rank {rank}: step 50 at {place} comes from disk"


def test_ranks_that_were_killed_apart_go_on_from_one_step(job, tmp_path):
    j, place = job(1, 1), str(tmp_path / "c")
    j.run(saving, place, [[5], [6], []], ONE)
    # One shard is the whole state: what rank 0 alone came to save is the newest for both.
    mine, theirs = j.run(loading, place, ONE)
    assert mine == (6, {6.0}, True, "rank 0: step 6 comes from memory")
    assert theirs == (6, {6.0}, True, "rank 1: step 6 comes from a peer, rank 0")


SHARDS = {"local_shard_num": 2, "global_shard_num": 2}


def test_shards_come_back_only_where_all_are_and_into_a_world_of_their_size(job, tmp_path):
    j, place = job(2), str(tmp_path / "c")
    j.run(saving, place, [[5], [6], []], SHARDS)
    first, second = j.run(loading, place, SHARDS)
    assert first == (5, {5.0}, True, "rank 0: step 5 comes from memory")
    assert second == (6, {6.0}, True, "rank 1: step 5 comes from memory")
    j.nodes = [1, 1]
    j.memory = [[arena] for arena in j.memory[0]]
    one, _ = j.run(loading, place, {"global_shard_num": 2})
    assert one == (1000, {1000.0}, True, "rank 0: step 1000 comes from memory")
    j.nodes, j.memory = [1], j.memory[:1]
    j.nodes.append(2)
    j.memory.append([Job(tmp_path, [1]).memory[0][0] for _ in range(2)])
    for told in j.run(loading, place, SHARDS):
        assert "of rank 0 of 2, and this is rank 0 of 3" in told[0]


def saving_in_place(rank: int, place: str) -> tuple:
    checkpointer = DdpCheckpointer(place, **SHARDS)
    paths = ["a.pt", f"b-{rank}.pt", ["c/c.pt", "c.pt"][rank]]
    kept = [checkpointer.save_checkpoint(5, state_of(5), f"{place}/{path}", MEMORY) for path in paths]
    return (kept, *said.lines)


def test_each_shard_in_the_place_has_a_file_of_its_own(job, tmp_path):
    for kept, *lines in job(2).run(saving_in_place, str(tmp_path / "c")):
        assert kept == [False, True, False]
        assert "rank 1: would save step 5 to MEMORY as ./a.pt" in lines[0]
        assert "rank 1: would save step 5 to MEMORY as ./c.pt" in lines[1]


def test_whatever_one_rank_saves_alone_the_step_that_all_have_stays(job, tmp_path):
    j, place = job(2), str(tmp_path / "c")
    j.run(saving, place, [[4, 5], [6, 7, 8], []], SHARDS)
    first, second = j.run(loading, place, SHARDS)
    assert first == (5, {5.0}, True, "rank 0: step 5 comes from memory")
    assert second == (6, {6.0}, True, "rank 1: step 5 comes from memory")


def without_launcher(rank: int, place: str) -> tuple:
    with pytest.raises(CheckpointError, match="only actor-launcher's master can say when so many"):
        DdpCheckpointer(place, **SHARDS)
    with DdpCheckpointer(place) as checkpointer:
        state = checkpointer.load_checkpoint()
        kept = checkpointer.save_checkpoint(8, state_of(8))
        return state and state["step"], kept, checkpointer.wait_latest_checkpoint(30)


def test_without_a_launcher_each_rank_reads_the_disk(job, tmp_path):
    j, place = job(2, launched=False), str(tmp_path / "c")
    assert j.run(without_launcher, place) == [({}, True, True)] * 2
    assert j.run(without_launcher, place) == [(8, True, True)] * 2
