"""Images that are lost with their nodes come back from pieces at others: what is planned, and what a few ranks do."""

from __future__ import annotations

import itertools
import zlib

import pytest
import torch
from few_ranks import Job, said
from others_memory import hold, parity_of, view_of

from troupe.checkpoint import Arena, CheckpointError, DdpCheckpointer, StorageType, library
from troupe.checkpoint.rebuilding import Parity, Plan, Rebuilt, Transfer, plan
from troupe.checkpoint.stripes import Code, accumulate

MEMORY = StorageType.MEMORY
MADE = (1, 5)


def state_images(code: Code, seed: int) -> list[torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    sizes = [1000, 4097, 64, 1, 777, 130]
    return [
        torch.randint(0, 256, (sizes[i % 6],), dtype=torch.uint8, generator=chance)
        for i in range(code.members)
    ]


class Nodes:
    """Groups of ranks, one rank at a node, with all their images and parities."""

    def __init__(self, code: Code, groups: int = 1, made: tuple[int, int] = MADE):
        self.images: dict[int, torch.Tensor] = {}
        self.held: list[tuple[Parity, torch.Tensor]] = []
        self.made = made
        for group in range(groups):
            members = state_images(code, group)
            ranks = tuple(range(group, groups * code.members, groups))
            self.images.update(zip(ranks, members, strict=True))
            for stripe, row in itertools.product(range(code.members), range(code.parity)):
                gives = [code.piece_of(m, stripe) is not None for m in range(code.members)]
                parity = Parity(
                    ranks[code.target(stripe, row)],
                    stripe * code.parity + row,
                    made,
                    code,
                    stripe,
                    row,
                    ranks,
                    tuple(m.numel() * g for m, g in zip(members, gives, strict=True)),
                    tuple(
                        zlib.crc32(bytes(m.numpy())) * g for m, g in zip(members, gives, strict=True)
                    ),
                )
                self.held.append((parity, parity_of(code, members, stripe, row)))

    def sizes(self, *lost: int) -> dict[int, dict[tuple[int, int], int]]:
        return {
            rank: {} if rank in lost else {self.made: image.numel()}
            for rank, image in self.images.items()
        }

    def parities(self, *lost: int) -> list[Parity]:
        return [parity for parity, _ in self.held if parity.at not in lost]

    def carried_out(self, what: Plan) -> dict[int, bytes]:
        memory = {r.rank: torch.zeros(r.bytes, dtype=torch.uint8) for r in what.rebuilt}
        content = {(p.at, p.number): held for p, held in self.held}
        for t in what.transfers:
            if t.parity is None:
                part = self.images[t.source][t.begin : t.end]
            else:
                before = library.HELD_BEFORE
                part = content[t.source, t.parity][t.begin - before : t.end - before]
            assert part.numel() == t.end - t.begin
            accumulate(memory[t.to][t.into : t.into + part.numel()], part, t.times)
        return {rank: bytes(m.numpy()) for rank, m in memory.items()}


@pytest.mark.parametrize(
    "code", [Code(2, 1), Code(3, 1), Code(3, 2), Code(4, 2), Code(5, 2), Code(5, 4)], ids=str
)
@pytest.mark.parametrize("groups", [1, 2])
def test_whoever_is_lost_gets_the_image_that_it_had(code, groups):
    nodes = Nodes(code, groups)
    for count in range(1, code.parity + 1):
        for lost in itertools.combinations(range(code.members), count):
            ranks = [member * groups for member in lost]
            what = plan(nodes.sizes(*ranks), nodes.parities(*ranks))
            assert what and what.made == MADE
            assert [one.rank for one in what.rebuilt] == ranks
            assert all(t.source not in ranks and t.to in ranks for t in what.transfers)
            again = nodes.carried_out(what)
            for one in what.rebuilt:
                assert again[one.rank] == bytes(nodes.images[one.rank].numpy())
                assert one.crc32 == zlib.crc32(again[one.rank])


def test_more_than_there_are_parities_are_lost_for_good():
    for code in (Code(3, 1), Code(4, 2)):
        nodes = Nodes(code)
        lost = range(code.parity + 1)
        assert plan(nodes.sizes(*lost), nodes.parities(*lost)) is None


def test_one_of_each_group_may_be_lost():
    nodes = Nodes(Code(2, 1), groups=3)
    what = plan(nodes.sizes(0, 1, 5), nodes.parities(0, 1, 5))
    assert what and [one.rank for one in what.rebuilt] == [0, 1, 5]
    assert plan(nodes.sizes(0, 3), nodes.parities(0, 3)) is None  # both of one


def test_what_all_have_needs_nothing():
    nodes = Nodes(Code(3, 1))
    assert plan(nodes.sizes(), nodes.parities()) == Plan(MADE)
    assert plan(nodes.sizes(), []) == Plan(MADE)
    assert plan({0: {}, 1: {}}, []) is None


def test_the_newest_step_that_all_can_have_is_taken():
    old, new = Nodes(Code(3, 1), made=(1, 9)), Nodes(Code(3, 1), made=(2, 3))
    sizes = {rank: {**old.sizes(1)[rank], **new.sizes(1)[rank]} for rank in range(3)}
    both = old.parities(1) + new.parities(1)
    assert plan(sizes, both).made == (2, 3)
    assert plan(sizes, both, {(2, 3)}).made == (1, 9)
    assert plan(sizes, both, {(2, 3), (1, 9)}) is None
    # Of the newer one a piece is missing.
    few = [p for p in new.parities(1) if p.stripe != 2]
    assert plan(sizes, old.parities(1) + few).made == (1, 9)
    # The older one all have.
    assert plan({r: {(1, 9): 1000, **new.sizes(1)[r]} for r in range(3)}, few) == Plan((1, 9))


def test_a_copy_needs_no_one_elses_image():
    nodes = Nodes(Code(2, 1))
    assert plan(nodes.sizes(1), nodes.parities(1)) == Plan(
        MADE,
        [Rebuilt(1, 4097, zlib.crc32(bytes(nodes.images[1].numpy())))],
        [Transfer(0, 0, library.HELD_BEFORE, library.HELD_BEFORE + 4097, 1, 0, 1)],
    )


def test_images_of_another_size_than_was_summed_are_of_no_use():
    nodes = Nodes(Code(3, 1))
    sizes = nodes.sizes(1)
    sizes[0][MADE] += 1
    assert plan(sizes, nodes.parities(1)) is None


def test_parities_that_say_different_things_of_an_image_are_of_no_use():
    nodes = Nodes(Code(3, 1))
    parities = nodes.parities(1)
    changed = Parity(**{**vars(parities[0]), "crc32": (1, 2, 3)})
    assert plan(nodes.sizes(1), [changed, *parities[1:]]) is None


def test_parities_of_different_images_are_not_mixed():
    nodes = Nodes(Code(5, 2))
    parities = nodes.parities(0, 1)
    assert plan(nodes.sizes(0, 1), parities)
    # The third rank gave another image to the second parity of a stripe of which both are needed.
    [at] = [i for i, p in enumerate(parities) if (p.stripe, p.row) == (3, 1)]
    sums = list(parities[at].crc32)
    sums[2] += 1
    parities[at] = Parity(**{**vars(parities[at]), "crc32": tuple(sums)})
    assert plan(nodes.sizes(0, 1), parities) is None


def test_a_process_that_lost_its_image_takes_the_parity_at_its_own_node():
    nodes = Nodes(Code(3, 2))
    moved = [Parity(**{**vars(p), "at": 2, "number": 99}) for p in nodes.parities() if p.at == 0]
    what = plan(nodes.sizes(2), nodes.parities(2) + moved)
    assert what and {(t.source, t.parity) for t in what.transfers} == {(2, 99)}


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
    images, generation = [], 0
    for [arena] in job.memory:
        with view_of(arena) as seen:
            [image] = [i for i in seen.found() if i.step == step]
            generation = image.generation
            with open(image.path, "rb") as file:
                images.append(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8))
    if spoil:
        images = [image.flip(0) for image in images]
    for stripe in range(3):
        memory = job.others[CODE.target(stripe, 0)]
        hold(memory, CODE, images, stripe, 0, step=step, generation=generation)


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
            "an older step is looked for: rank 1: step 6 from pieces at other nodes is damaged"
        )
        assert ("pieces" in found[3]) == (rank == 1)
