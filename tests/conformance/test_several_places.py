"""A process that saves to several directories, one after the other and at once: what is whose, and what is left when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from few_ranks import Job, said


from troupe.checkpoint import DdpCheckpointer, StorageType, complete_steps

MEMORY = StorageType.MEMORY


def state_of(step: int) -> dict:
    return {"step": step, "x": torch.full((1 << 18,), float(step))}


def step_of(state: dict) -> int | None:
    assert not state or bool((state["x"] == state["step"]).all())
    return state["step"] if state else None


@pytest.fixture
def job(tmp_path):
    jobs = []

    def made(*nodes: int, launched: bool = True) -> Job:
        (tmp_path / f"job{len(jobs)}").mkdir()
        jobs.append(Job(tmp_path / f"job{len(jobs)}", nodes, launched))
        return jobs[-1]

    yield made
    for one in jobs:
        one.close()


# ---- One after the other ----


def stage(rank: int, place: str, steps: int, then: str | None) -> list:
    """Trains from what it finds to `steps`; `then`: what the next stage finds in a directory of its own."""
    found = []
    with DdpCheckpointer(place) as checkpointer:
        state = checkpointer.load_checkpoint()
        found.append(step_of(state))
        for step in range((state or {"step": 0})["step"] + 1, steps + 1):
            assert checkpointer.save_checkpoint(step, state_of(step), "", MEMORY)
    if then:
        with DdpCheckpointer(then) as checkpointer:
            found.append(step_of(checkpointer.load_checkpoint()))
    return [found, said.lines]


def test_a_stage_never_begins_with_the_state_of_another(job, tmp_path):
    j, first, second = job(2, 1), str(tmp_path / "first"), str(tmp_path / "second")
    for found, _ in j.run(stage, first, 5, None):
        assert found == [None]
    for found, lines in j.run(stage, first, 5, second):  # as after any restart
        assert found == [5, None]
        assert not any("step 5 comes" in line for line in lines if second in line)
    told = j.run(stage, second, 3, None)
    assert [found for found, _ in told] == [[None]] * 3
    assert any(f"{second}: training begins anew; step 5 in memory is of {first}, and is not loaded here" in line for line in told[0][1])
    for found, _ in j.run(stage, first, 5, second):
        assert found == [5, 3]
    j.loses(1)  # and what a peer gives is of the place, too
    for found, _ in j.run(stage, first, 5, second):
        assert found == [5, 3]


def memory_of_many(rank: int, place: str, count: int) -> list:
    found = []
    for trial in range(count):
        with DdpCheckpointer(f"{place}/{trial}") as checkpointer:
            found.append(step_of(checkpointer.load_checkpoint()))
            for step in (1, 2, 3):
                assert checkpointer.save_checkpoint(step, state_of(step), "", MEMORY)
    with DdpCheckpointer(f"{place}/{count - 1}") as checkpointer:
        found.append(step_of(checkpointer.load_checkpoint()))
    return [found, said.lines]


def test_the_oldest_go_when_there_are_more_than_slots_and_that_is_told(job, tmp_path):
    [[found, lines]] = job(1).run(memory_of_many, str(tmp_path), 20)
    assert found == [None] * 20 + [3]
    told = [line for line in lines if "leaves memory" in line]
    assert told and f"step 3 of {tmp_path}/0 leaves memory" in told[0]
    assert len(told) == len(set(told))


# ---- At once ----


def several_at_once(rank: int, place: str, steps: int, die: bool) -> list:
    opened = [DdpCheckpointer(f"{place}/{name}") for name in "abc"]
    twice = DdpCheckpointer(f"{place}/a")  # of the first one's directory
    found = [step_of(one.load_checkpoint()) for one in (*opened, twice)]
    begin = found[0] or 0
    for step in range(begin + 1, begin + steps + 1):
        for number, one in enumerate(opened):
            assert one.save_checkpoint(step, state_of(1000 * number + step), "", MEMORY)
    found += [step_of(one.load_checkpoint()) for one in (*opened, twice)]
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    for one in (opened[1], twice, opened[0], opened[2]):
        one.close()
    return found


def test_several_at_once_share_the_memory_and_each_finds_its_own(job, tmp_path):
    j, place = job(1, 1), str(tmp_path / "c")
    assert j.run(several_at_once, place, 4, True) == [-signal.SIGKILL] * 2
    for found in j.run(several_at_once, place, 4, False):
        assert found == [4, 1004, 2004, 4, 8, 1008, 2008, 8]
    j.loses(0)
    for found in j.run(several_at_once, place, 1, False):
        assert found == [8, 1008, 2008, 8, 9, 1009, 2009, 9]


def killed_at(rank: int, place: str, phase: str) -> list:
    """Two directories, and an end at each phase of the second one's saves."""
    first, second = DdpCheckpointer(f"{place}/a"), DdpCheckpointer(f"{place}/b")
    found = [step_of(one.load_checkpoint()) for one in (first, second)]
    assert first.save_checkpoint(11, state_of(11), "", MEMORY)
    assert second.save_checkpoint(21, state_of(21), "", MEMORY)
    if phase == "between":
        pass
    elif phase == "begun":  # the slot is being written
        second._arena.begin(1 << 20, 22, save=99 << 24)
    elif phase == "alone":  # not all ranks have said that they have it
        second._saves.keep(second.me, second._next_save(), 22, state_of(22), None, False)
    elif phase == "closed":
        second.close()
        first.save_checkpoint(12, state_of(12), "", MEMORY)
    elif phase == "reopened":
        second.close()
        second = DdpCheckpointer(f"{place}/b")
        assert second.save_checkpoint(23, state_of(23), "", MEMORY)
    if phase != "none":
        os.kill(os.getpid(), signal.SIGKILL)
    return found


@pytest.mark.parametrize(
    ("phase", "left"),
    [("between", [11, 21]), ("begun", [11, 21]), ("alone", [11, 22]), ("closed", [12, 21]), ("reopened", [11, 23])],
)
def test_what_a_process_leaves_that_is_killed(job, tmp_path, phase, left):
    j, place = job(1), str(tmp_path / "c")
    assert j.run(killed_at, place, phase) == [-signal.SIGKILL]
    assert j.run(killed_at, place, "none") == [left]


def with_copies(rank: int, place: str, save: bool) -> list:
    found = []
    for name in "ab":
        with DdpCheckpointer(f"{place}/{name}", global_shard_num=2) as checkpointer:
            found.append(step_of(checkpointer.load_checkpoint()))
            if save:
                step = {"a": 5, "b": 7}[name]
                assert checkpointer.save_checkpoint(step, state_of(step), "", MEMORY)
    return found


def test_shards_of_two_directories_are_not_put_together(job, tmp_path):
    j, place = job(1, 1), str(tmp_path / "c")
    assert j.run(with_copies, place, True) == [[None, None]] * 2
    assert j.run(with_copies, place, False) == [[5, 7]] * 2


def of_two_kinds(rank: int, place: str, save: bool) -> list:
    class Other(DdpCheckpointer):
        framework = 2

    found = []
    for kind, step in ((DdpCheckpointer, 3), (Other, 4)):
        with kind(place) as checkpointer:
            found.append(step_of(checkpointer.load_checkpoint()))
            if save:
                assert checkpointer.save_checkpoint(step, state_of(step), "", MEMORY)
    return found


def test_a_framework_does_not_load_what_another_has_in_memory_of_the_same_directory(job, tmp_path):
    j, place = job(1), str(tmp_path / "c")
    assert j.run(of_two_kinds, place, True) == [[None, None]]
    assert j.run(of_two_kinds, place, False) == [[3, 4]]


# ---- Children ----

READS = """
import sys
from troupe.checkpoint import DdpCheckpointer
with DdpCheckpointer(sys.argv[1]) as checkpointer:
    state = checkpointer.load_checkpoint()
    print("read", state and state["step"])
    checkpointer.save_checkpoint(77, {"step": 77})
    print("kept", checkpointer.wait_latest_checkpoint(60))
"""


def with_children(rank: int, place: str) -> dict:
    read = [sys.executable, "-c", READS, f"{place}/disk"]
    found = {}

    def started() -> str:
        return subprocess.run(read, capture_output=True, text=True, check=False).stdout

    found["before"] = started()
    checkpointer = DdpCheckpointer(f"{place}/own")
    assert checkpointer.save_checkpoint(1, state_of(1), "", MEMORY)
    found["started"] = started()
    child = os.fork()
    if child == 0:
        how = 1
        try:
            kept = checkpointer.save_checkpoint(2, {"step": 2}, "", MEMORY)
            how = 2 if not kept and "a child that was forked" in said.lines[-1] else 3
        finally:
            checkpointer.close()
        with DdpCheckpointer(f"{place}/of_child") as mine:
            kept = mine.save_checkpoint(3, {"step": 3}, "", MEMORY)
            how += 10 if kept and mine.load_checkpoint() == {"step": 3} else 0
        os._exit(how)
    found["forked"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found["mine"] = step_of(checkpointer.load_checkpoint())
    assert checkpointer.save_checkpoint(4, state_of(4), "", MEMORY)
    found["then"] = step_of(checkpointer.load_checkpoint())
    return found


def test_programs_that_a_worker_starts_and_children_that_it_forks_have_memory_of_their_own(job, tmp_path):
    with DdpCheckpointer(tmp_path / "disk") as checkpointer:
        assert checkpointer.save_checkpoint(9, state_of(9))
    [found] = job(1).run(with_children, str(tmp_path))
    assert found["forked"] == 12, found
    assert (found["mine"], found["then"]) == (1, 4)
    assert found["before"] == "read 9\nkept True\n"
    assert found["started"] == "read 77\nkept True\n"


# ---- Without a launcher ----


def test_a_saver_that_is_killed_is_started_again_and_writes_what_it_finds(tmp_path, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(1, state_of(1))
        assert checkpointer.wait_latest_checkpoint(60)
        for step in (2, 3, 4):
            saver = checkpointer._saver._process
            os.kill(saver.pid, signal.SIGSTOP)  # it does not come to write the next step
            if step != 3:
                assert checkpointer.save_checkpoint(step, state_of(step))
            os.kill(saver.pid, signal.SIGKILL)
            saver.wait()
            if step == 3:
                assert checkpointer.save_checkpoint(step, state_of(step))
            assert checkpointer.wait_latest_checkpoint(60)
            assert step_of(torch.load(tmp_path / str(step) / "rank_0.pt")) == step
            assert f"troupe saver (pid {saver.pid}) was killed by signal 9; a new one" in caplog.text
        os.kill(checkpointer._saver._process.pid, signal.SIGKILL)
        assert checkpointer.save_checkpoint(5, state_of(5))
    until = time.monotonic() + 60
    while complete_steps(str(tmp_path))[0] != 5:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("stopped", [True, False])
def test_a_saver_that_is_killed_after_the_last_save_loses_nothing(tmp_path, stopped):
    before = os.listdir("/proc/self/fd")
    with DdpCheckpointer(tmp_path) as checkpointer:
        saver = checkpointer._saver._process
        if stopped:  # it does not come to write it
            os.kill(saver.pid, signal.SIGSTOP)
        assert checkpointer.save_checkpoint(5, state_of(5))
        os.kill(saver.pid, signal.SIGKILL)
    assert complete_steps(str(tmp_path)) == [5]
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_saver_that_ends_again_and_again_fails_saves_in_a_line(tmp_path, caplog):
    with DdpCheckpointer(tmp_path) as checkpointer:
        kept = []
        for step in range(1, 7):
            saver = checkpointer._saver._process
            saver.kill()
            saver.wait()
            kept.append(checkpointer.save_checkpoint(step, state_of(step)))
        assert kept == [True] * 4 + [False] * 2
        assert "was killed by signal 9, as 5 have within 60 s: nothing is written to the disk" in caplog.text
        assert not checkpointer.wait_latest_checkpoint(60)
        assert step_of(checkpointer.load_checkpoint()) == 4  # in memory
