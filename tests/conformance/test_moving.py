"""Nodes that keep their memory and get other ranks: each rank goes on from its own part, wherever it lies. What is planned: ckpt/load/load_plan_test.cpp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from few_ranks import Job, said
from others_memory import hold, view_of

from troupe.checkpoint import Arena, CheckpointError, DdpCheckpointer, StorageType, moving, recovery
from troupe.checkpoint.stripes import Code

CODE = Code(3, 1)
SWAPPED, ROTATED, BACK = [0, 2, 1], [2, 0, 1], [1, 2, 0]


def mine(rank: int, step: int) -> dict:
    """Not of the same size at all ranks."""
    return {"step": step, "x": torch.full((1000 * (rank + 1),), float(step * 10 + rank))}


def saving(rank: int, place: str, options: dict, steps: Sequence[int], disk: bool = False) -> None:
    with DdpCheckpointer(place, **options) as checkpointer:
        for step in steps:
            storage = StorageType.DISK if disk else StorageType.MEMORY
            assert checkpointer.save_checkpoint(step, mine(rank, step), "", storage), said.lines


def loading(rank: int, place: str, options: dict) -> tuple:
    """The step; whether that is the part of this rank, or of its node's local rank 0 if it has none; and what was said."""
    moving.PIECE = 1000  # several of each image, and not as many of each
    try:
        with DdpCheckpointer(place, **options) as checkpointer:
            state = checkpointer.load_checkpoint()
            part = rank if checkpointer._arena else rank - checkpointer.me.local_rank
            same = bool(state) and torch.equal(state["x"], mine(part, state["step"])["x"])
            return state.get("step"), same, *said.lines
    except CheckpointError as error:
        return str(error), False, *said.lines


Made = Callable[..., Job]


@pytest.fixture
def made(tmp_path):
    jobs = []

    def make(*nodes: int) -> Job:
        directory = tmp_path / f"job-{len(jobs)}"
        directory.mkdir()
        jobs.append(Job(directory, nodes))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


def move(job: Job, nodes: Sequence[int]) -> None:
    """The node that was the `nodes[i]`th is the `i`th from now on."""
    job.memory = [job.memory[node] for node in nodes]
    job.others = {i: job.others[node] for i, node in enumerate(nodes) if node in job.others}


def hold_pieces(job: Job, step: int) -> None:
    """As the nodes do when a step's images are whole."""
    job.others = {node: Arena(images=4) for node in range(3)}
    images, made = [], {}
    for [arena] in job.memory:
        with view_of(arena) as seen:
            [image] = [i for i in seen.found() if i.step == step]
            made = {"generation": image.generation, "save": image.save}
            with open(image.path, "rb") as file:
                images.append(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8))
    for stripe in range(3):
        hold(job.others[CODE.target(stripe, 0)], CODE, images, stripe, 0, step=step, **made)


def sources(found: Sequence[tuple], step: int) -> list[str]:
    """Where each rank has its own part of that step from."""
    prefix = f"step {step} comes from "
    assert [one[:2] for one in found] == [(step, True)] * len(found)
    return [line.partition(prefix)[2] for one in found for line in one[2:] if prefix in line]


def named(peers: Sequence[int | None]) -> list[str]:
    return ["memory" if peer is None else f"a peer, rank {peer}" for peer in peers]


@pytest.mark.parametrize("options", [{}, {"copy_on_write": True}], ids=["copied", "copied behind"])
@pytest.mark.parametrize(
    ("nodes", "peers"), [(SWAPPED, [None, 2, 1]), (ROTATED, [1, 2, 0])], ids=["two", "three"]
)
def test_ranks_that_moved_get_their_parts_from_each_other(made, tmp_path, nodes, peers, options):
    # What is copied behind the call is not agreed on before the next save: the step before it is.
    options = {"local_shard_num": 1, "global_shard_num": 3, **options}
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    move(job, nodes)
    assert sources(job.run(loading, place, options), 6) == named(peers)
    assert sources(job.run(loading, place, options), 6) == ["memory"] * 3


def test_to_and_fro_without_a_save_each_rank_finds_its_own_part_among_those_of_others(made, tmp_path):
    options = {"local_shard_num": 1, "global_shard_num": 3}
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    for _ in range(2):
        move(job, SWAPPED)
        assert sources(job.run(loading, place, options), 6)[0] == "memory"
        move(job, SWAPPED)
        assert sources(job.run(loading, place, options), 6) == ["memory"] * 3
    move(job, ROTATED)
    sources(job.run(loading, place, options), 6)
    move(job, BACK)
    sources(job.run(loading, place, options), 6)
    job.run(saving, place, options, [7])
    move(job, ROTATED)
    assert sources(job.run(loading, place, options), 7) == named([1, 2, 0])


@pytest.mark.parametrize(
    ("saving_ranks", "peers"), [(2, [2, 3, 0, 1]), (1, [2, None, 0, None])], ids=["all save", "one saves"]
)
def test_two_ranks_on_each_node(made, tmp_path, saving_ranks, peers):
    options = {"local_shard_num": saving_ranks, "global_shard_num": 2 * saving_ranks}
    job, place = made(2, 2), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    for _ in range(2):
        move(job, [1, 0])
        sources(job.run(loading, place, options), 6)
    job.run(saving, place, options, [7])
    move(job, [1, 0])
    assert sources(job.run(loading, place, options), 7) == named(peers)


def test_ranks_that_moved_and_a_node_that_was_lost(made, tmp_path):
    options = {"local_shard_num": 1, "global_shard_num": 3}
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    hold_pieces(job, 6)
    job.loses(0)
    move(job, ROTATED)
    found = sources(job.run(loading, place, options), 6)
    assert found == ["pieces at other nodes", *named([2, 0])]


def test_a_part_that_went_with_its_node_is_named_and_no_other_taken_for_it(made, tmp_path):
    options = {"local_shard_num": 1, "global_shard_num": 3}
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    job.loses(1)
    move(job, ROTATED)
    found = job.run(loading, place, options)
    assert [one[0] for one in found] == [None] * 3
    lost = f"step 6 is lost: rank 1's shard of it is in no memory and not at {place}. Training begins anew"
    assert [one[2:] for one in found] == [(lost,), (), ()]


def loading_without_room(rank: int, place: str, options: dict) -> tuple:
    """Rank 1 has no memory for what it is to get first."""
    if rank == 1:
        begin, asked = Arena.begin, []

        def refused(*arguments: object, **named: object) -> object:
            asked.append(arguments)
            if len(asked) == 1:
                raise CheckpointError("there is no room")
            return begin(*arguments, **named)

        Arena.begin = refused
        recovery.ROOM_WITHIN = 0
    return loading(rank, place, options)


@pytest.mark.parametrize("copies", [True, False], ids=["with copies", "without"])
def test_without_room_for_what_comes_the_next_source_is_taken(made, tmp_path, copies):
    options = {"local_shard_num": 1, "global_shard_num": 3}
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, options, [5, 6])
    if copies:
        hold_pieces(job, 6)
    move(job, ROTATED)
    found = job.run(loading_without_room, place, options)
    if copies:
        assert sources(found, 6) == ["pieces at other nodes"] * 3
    else:
        assert sources(found, 5) == named([1, 2, 0])  # by then there is room
    assert all("rank 1: there is no room" in one[2] for one in found)


def test_in_a_world_of_another_size_parts_of_others_are_of_no_use(made, tmp_path):
    job, place = made(1, 1, 1), str(tmp_path / "c")
    job.run(saving, place, {"local_shard_num": 1, "global_shard_num": 3}, [6])
    job.nodes.pop()
    found = job.run(loading, place, {"local_shard_num": 1, "global_shard_num": 2})
    job.nodes.append(1)
    for said_by_all, *_ in found:
        assert "step 6 in memory is of rank 0 of 3, and this is rank 0 of 2" in said_by_all
