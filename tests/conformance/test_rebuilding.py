"""Images that are lost with their nodes come back from pieces at others. What is planned: ckpt/load/rebuild_plan_test.cpp."""

from __future__ import annotations

import pytest
import torch
from few_ranks import Job, said
from others_memory import hold, view_of

from troupe.checkpoint import Arena, CheckpointError, DdpCheckpointer, StorageType
from troupe.checkpoint.stripes import Code

MEMORY = StorageType.MEMORY
# ---- A few ranks ----

CODE = Code(3, 1)
OPTIONS = {"local_shard_num": 1, "global_shard_num": 3}


def saving(rank: int, place: str, steps: list[int]) -> None:
    with DdpCheckpointer(place, **OPTIONS) as checkpointer:
        for step in steps:
            checkpointer.save_checkpoint(step, mine(rank, step), "", MEMORY)


def mine(rank: int, step: int) -> dict:
    size = 1000 * (rank + 1)
    return {"step": step, "x": torch.full((size,), float(step * 10 + rank))}


def loading(rank: int, place: str) -> tuple:
    try:
        with DdpCheckpointer(place, **OPTIONS) as checkpointer:
            state = checkpointer.load_checkpoint()
            same = bool(state) and torch.equal(state["x"], mine(rank, state["step"])["x"])
            return state.get("step"), same, *said.lines
    except CheckpointError as error:
        return (str(error), *said.lines)


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job").mkdir()
    one = Job(tmp_path / "job", [1, 1, 1])
    one.others = {node: Arena(images=4) for node in range(3)}
    yield one
    one.close()


def hold_pieces(job: Job, step: int, spoil: bool = False) -> None:
    """As the nodes do when a step's images are whole."""
    images, made = [], {}
    for [arena] in job.memory:
        with view_of(arena) as seen:
            [image] = [i for i in seen.found() if i.step == step]
            made = {"generation": image.generation, "save": image.save}
            with open(image.path, "rb") as file:
                images.append(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8))
    if spoil:
        images = [image.flip(0) for image in images]
    for stripe in range(3):
        memory = job.others[CODE.target(stripe, 0)]
        hold(memory, CODE, images, stripe, 0, step=step, **made)


@pytest.mark.parametrize("lost", range(3))
def test_a_node_that_was_lost_gets_its_state_from_pieces_at_the_others(job, lost, tmp_path):
    place = str(tmp_path / "c")
    job.run(saving, place, [5, 6])
    hold_pieces(job, 6)
    job.loses(lost)
    for rank, found in enumerate(job.run(loading, place)):
        origin = "pieces at other nodes" if rank == lost else "memory"
        assert found == (6, True, f"rank {rank}: step 6 comes from {origin}")
    # From then on it is in memory, like any other.
    for rank, found in enumerate(job.run(loading, place)):
        assert found == (6, True, f"rank {rank}: step 6 comes from memory")


def test_what_two_nodes_have_lost_is_gone(job, tmp_path):
    place = str(tmp_path / "c")
    job.run(saving, place, [5])
    hold_pieces(job, 5)
    job.loses(0)
    job.loses(1)
    assert {found[0] for found in job.run(loading, place)} == {None}


def test_a_step_that_all_have_is_not_rebuilt_and_a_newer_one_is(job, tmp_path):
    place = str(tmp_path / "c")
    job.run(saving, place, [5])
    hold_pieces(job, 5)
    for found in job.run(loading, place):
        assert found[0] == 5 and "from memory" in found[2]
    job.run(saving, place, [6])
    hold_pieces(job, 6)
    job.loses(2)
    assert [found[:2] for found in job.run(loading, place)] == [(6, True)] * 3


def test_pieces_of_something_else_than_was_saved_are_told_and_not_taken(job, tmp_path):
    place = str(tmp_path / "c")
    job.run(saving, place, [5, 6])
    hold_pieces(job, 5)
    hold_pieces(job, 6, spoil=True)
    job.loses(1)
    for rank, found in enumerate(job.run(loading, place)):
        assert found[:2] == (5, True)
        assert found[2] == (
            "step 6 was not to be had; another source of it or an older step is looked for: "
            "rank 1: step 6 from pieces at other nodes is damaged"
        )
        assert ("pieces" in found[3]) == (rank == 1)
