"""Which node holds copies of which images, and what ranks say to each other of the last ones."""

from __future__ import annotations

import pytest

from troupe.checkpoint.copies import FAILED, HELD, NONE, UNDER_WAY, Copies, Redundancy
from troupe.checkpoint.image import Image
from troupe.checkpoint.library import CheckpointError
from troupe.checkpoint.stripes import Code, Group


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ((0, 0, 8), None),
        ((1, 0, 8), None),
        ((2, 0, 8), Redundancy(2, 1)),
        ((5, 0, 8), Redundancy(5, 4)),
        ((0, 1, 8), Redundancy(8, 1)),
        ((1, 2, 16), Redundancy(16, 2)),
    ],
)
def test_the_redundancy_that_is_asked_for(arguments, chosen):
    assert Redundancy.chosen(*arguments) == chosen


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((-1, 0, 8), "replica_count is -1; it is 0 to 5"),
        ((6, 0, 8), "replica_count is 6; it is 0 to 5"),
        ((0, 3, 8), "parity is 3; it is 0, 1 .XOR. or 2 .Reed-Solomon."),
        ((2, 1, 8), "replica_count and parity exclude each other"),
        ((0, 2, 2), "parity_group is 2; with parity 2 it is 3 to 16 nodes"),
        ((0, 1, 17), "parity_group is 17"),
    ],
)
def test_a_redundancy_that_cannot_be(arguments, why):
    with pytest.raises(ValueError, match=why):
        Redundancy.chosen(*arguments)


@pytest.mark.parametrize(
    ("how", "nodes", "sizes"),
    [
        (Redundancy(2, 1), 2, [2]),
        (Redundancy(2, 1), 6, [2, 2, 2]),
        (Redundancy(2, 1), 5, [2, 3]),  # a sum, since no node is to be alone
        (Redundancy(2, 1), 1, [1]),
        (Redundancy(8, 1), 5, [5]),
        (Redundancy(8, 2), 30, [10, 10, 10]),
        (Redundancy(16, 2), 31, [15, 16]),
        (Redundancy(16, 1), 10_000, [16] * 625),
        (Redundancy(4, 3), 10, [4, 4, 2]),  # three can only be lost of copies
        (Redundancy(5, 4), 6, [5, 1]),
    ],
)
def test_groups_of_nodes(how, nodes, sizes):
    groups = how.groups(range(100, 100 + nodes))
    assert [len(group) for group in groups] == sizes
    assert [node for group in groups for node in group] == list(range(100, 100 + nodes))


class Memory:
    """An arena as far as Copies sees it: what was saved and not yet whole is not found."""

    def __init__(self):
        self.images: list[Image] = []
        self.settled: dict[int, bool] = {}  # by sequence: whether they are held
        self.kept: list[int] = []
        self.refuses = ""

    def want_copies(self, group: Group, image: Image | None) -> int:
        if self.refuses:
            raise CheckpointError(self.refuses)
        return image.slot if image else 3

    def found(self) -> list[Image]:
        return self.images

    def copies_settled(self, image: Image, within: float) -> bool:
        if not self.settled.get(image.sequence, True):
            raise CheckpointError("rank 1 at n2:1: the connection was closed")
        return image.sequence in self.settled

    def keep_for_others(self, image: Image | None) -> None:
        self.kept.append(image.sequence if image else 0)


def image_of(step: int) -> Image:
    return Image(step, 1, 1, 0, 2, 1000, 3, step * 10, 0)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def copies(memory: Memory) -> Copies:
    return Copies(memory, Group(Code(2, 1), 0, [0, 1], ["n1:1", "n2:1"]))


def test_a_step_stays_when_all_ranks_say_that_it_is_held(copies, memory):
    assert copies.state() == NONE
    assert copies.agree([NONE, NONE])
    copies.want(7, 1)
    memory.images = [image_of(7)]
    assert copies.state() == UNDER_WAY
    assert not copies.agree([UNDER_WAY, HELD])
    memory.settled[70] = True
    assert copies.state() == HELD
    assert not copies.agree([HELD, UNDER_WAY])
    assert copies.held is None
    assert copies.agree([HELD, HELD])
    assert (copies.held, memory.kept) == (7, [70])


def test_a_step_that_failed_at_one_rank_is_not_held_and_the_one_before_it_stays(copies, memory):
    copies.want(7, 1, image_of(7))
    memory.settled = {70: True, 80: False}
    copies.agree([copies.state(), HELD])
    copies.want(8, 1, image_of(8))
    assert copies.state() == FAILED
    assert copies.agree([FAILED, HELD])
    assert (copies.held, memory.kept) == (7, [70])


def test_a_save_that_never_became_whole_has_no_copies(copies, memory):
    copies.want(7, 1)
    memory.images = [image_of(6)]
    assert copies.state() == FAILED


def test_a_rank_that_cannot_have_copies_says_so(copies, memory):
    memory.refuses = "memory suffices for one image"
    copies.want(7, 1)
    assert copies.state() == FAILED


def test_of_the_saves_that_were_skipped_the_last_is_given_and_only_once(copies, memory):
    copies.want(7, 1, image_of(7))
    copies.skip(8, 1)
    copies.skip(9, 1)
    memory.settled = {70: True, 90: True}
    assert copies.agree([copies.state(), HELD])
    copies.want_skipped()
    memory.images = [image_of(8), image_of(9)]
    assert copies.state() == HELD
    assert copies.agree([HELD, HELD])
    assert (copies.held, memory.kept, copies.skipped) == (9, [70, 90], None)
