"""Places in an epoch: in a world that stays as torch's sampler, in one that changes no sample lost or seen twice."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler


def world(size: int, samples: int, **how: Any) -> list[ElasticDistributedSampler]:
    return [ElasticDistributedSampler(range(samples), size, rank, **how) for rank in range(size)]


def trained(
    samplers: list[ElasticDistributedSampler], batch: int, steps: int | None = None, workers: int = 0
) -> tuple[list[int], dict[str, Any]]:
    """The samples of so many steps of all ranks, or of the rest of the epoch, and the state behind them."""
    loaders = [
        iter(ElasticDataLoader(s.dataset, batch, sampler=s, num_workers=workers)) for s in samplers
    ]
    seen: list[int] = []
    for _ in range(steps) if steps is not None else itertools.count():
        made = [next(loader, None) for loader in loaders]
        if made[0] is None:
            assert made == [None] * len(made)
            break
        seen += [int(index) for samples in made for index in samples]
    states = [sampler.state_dict() for sampler in samplers]
    assert all(state == states[0] for state in states)
    return seen, states[0]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_a_world_that_stays_sees_what_torchs_sampler_gives(
    size: int, shuffle: bool, drop_last: bool
) -> None:
    for samples in (1, 2, 5, 20, 23):
        for rank in range(size):
            how = (range(samples), size, rank, shuffle, 7, drop_last)
            theirs, ours = DistributedSampler(*how), ElasticDistributedSampler(*how)
            for epoch in range(3):
                theirs.set_epoch(epoch)
                ours.set_epoch(epoch)
                assert list(ours) == list(theirs)
                assert (len(ours), ours.total_size) == (len(theirs), theirs.total_size)


@pytest.mark.parametrize("shuffle", [False, True])
def test_from_four_ranks_to_two_and_back(shuffle: bool) -> None:
    state: dict[str, Any] = {}
    seen: list[int] = []
    for size, steps in ((4, 3), (2, 5), (4, None)):
        samplers = world(size, 96, shuffle=shuffle)
        for sampler in samplers:
            sampler.load_state_dict(state)
            sampler.set_epoch(0)
        some, state = trained(samplers, 4, steps)
        seen += some
    assert sorted(seen) == list(range(96))
    assert state["completed_num"] == 96


@pytest.mark.parametrize("seed", range(60))
def test_any_sequence_of_worlds_sees_each_sample_once(seed: int) -> None:
    chance = random.Random(seed)
    samples, drop_last = chance.randrange(1, 400), chance.random() < 0.3
    seen: list[int] = []
    state: dict[str, Any] = {"epoch": 5}
    while True:
        size, batch = chance.randrange(1, 9), chance.randrange(1, 6)
        samplers = world(size, samples, drop_last=drop_last)
        for sampler in samplers:
            sampler.load_state_dict(state)
        last = chance.random() < 0.2
        some, state = trained(samplers, batch, None if last else chance.randrange(4))
        seen += some
        if last or state["completed_num"] >= samples:
            break
    # At the very end each rank gets as many as the others: some again, or, with drop_last, not all.
    assert samples - size < len(seen) if drop_last else samples <= len(seen) < samples + size
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(5)).tolist()
    assert Counter(seen) == Counter((order * 9)[: len(seen)])


def test_an_epoch_that_was_filled_up_is_over_in_another_world() -> None:
    _, state = trained(world(4, 10), 1)
    assert state["completed_num"] == 12
    for size in (1, 2, 3):
        for sampler in world(size, 10):
            sampler.load_state_dict(state)
            assert (len(sampler), list(sampler)) == (0, [])
            sampler.set_epoch(1)
            assert len(sampler) == -(-10 // size)


def test_workers_that_draw_ahead_do_not_count() -> None:
    samplers = world(2, 40)
    seen, state = trained(samplers, 2, 3, workers=2)
    assert state["completed_num"] == 12
    rest = world(3, 40)
    for sampler in rest:
        sampler.load_state_dict(state)
    more, _ = trained(rest, 2)
    assert sorted(set(seen + more)) == list(range(40)) and len(seen + more) == 12 + 30


def test_the_epoch_after_a_resumed_one_is_whole() -> None:
    sampler = ElasticDistributedSampler(range(10), 1, 0, shuffle=False)
    sampler.load_state_dict({"epoch": 2, "completed_num": 7})
    assert sampler.epoch == 2
    assert list(sampler) == [7, 8, 9]
    assert list(sampler) == list(range(10)), "without set_epoch"
    sampler.load_state_dict({"epoch": 2, "completed_num": 7})
    sampler.set_epoch(3)
    assert list(sampler) == list(range(10))


def test_a_resumed_epoch_that_is_only_looked_at_begins_at_the_same_place() -> None:
    sampler = ElasticDistributedSampler(range(10), 1, 0, shuffle=False)
    sampler.load_state_dict({"completed_num": 7})
    assert next(iter(sampler)) == 7
    assert list(sampler) == [7, 8, 9]


def test_a_state_between_epochs() -> None:
    samplers = world(2, 10)
    trained(samplers, 5)
    for sampler in samplers:
        sampler.set_epoch(1)
    assert samplers[0].state_dict()["completed_num"] == 0
    assert samplers[0].state_dict()["epoch"] == 1


# ---- DLRover's form of the call, with another loader ----


def stepped(sampler: ElasticDistributedSampler, batch: int, steps: int) -> list[int]:
    batches = iter(DataLoader(sampler.dataset, batch, sampler=sampler))
    return [int(i) for _ in range(steps) for i in next(batches)]


def test_steps_before_a_restart_count_as_what_they_were() -> None:
    seen: list[int] = []
    states = []
    for sampler in world(4, 60, shuffle=False):
        seen += stepped(sampler, 2, 3)
        states.append(sampler.state_dict(3, 2))
    assert states[0]["completed_num"] == 24
    for sampler in world(2, 60, shuffle=False):
        sampler.load_state_dict(states[0])
        seen += stepped(sampler, 2, 2)
        states.append(sampler.state_dict(5, 2))  # 3 of the world of 4, 2 of this one
    assert states[-1]["completed_num"] == 32
    assert sorted(seen) == list(range(32))


def test_a_count_of_several_epochs_is_refused() -> None:
    sampler = ElasticDistributedSampler(range(20), 2, 0)
    stepped(sampler, 2, 5)
    sampler.set_epoch(1)
    stepped(sampler, 2, 1)
    with pytest.raises(ValueError, match="iter_step is 6, which is for more samples than the 4 "):
        sampler.state_dict(6, 2)
    assert sampler.state_dict(1, 2)["completed_num"] == 4


def test_a_sampler_that_nothing_is_drawn_from_is_told_by_the_script() -> None:
    sampler = ElasticDistributedSampler(range(20), 2, 0)
    assert sampler.state_dict(3, 2)["completed_num"] == 12
    assert sampler.state_dict(5, 2)["completed_num"] == 20
    with pytest.raises(ValueError, match="iter_step is 6, which is for more samples than the 20 "):
        sampler.state_dict(6, 2)


def test_a_count_that_forgot_the_steps_before_the_restart_is_refused() -> None:
    sampler = ElasticDistributedSampler(range(20), 2, 0)
    stepped(sampler, 2, 3)
    state = sampler.state_dict(3, 2)
    sampler.load_state_dict(state)
    with pytest.raises(ValueError, match="has 3 steps of epoch 0 already"):
        sampler.state_dict(1, 2)


def test_without_any_count_it_says_what_is_missing() -> None:
    sampler = ElasticDistributedSampler(range(20), 2, 0)
    assert sampler.state_dict()["completed_num"] == 0
    stepped(sampler, 2, 1)
    with pytest.raises(ValueError, match="use ElasticDataLoader"):
        sampler.state_dict()


def test_the_short_last_batch_does_not_go_beyond_the_epoch() -> None:
    sampler = ElasticDistributedSampler(range(10), 2, 0)
    stepped(sampler, 2, 3)  # 2, 2 and 1
    assert sampler.state_dict(3, 2)["completed_num"] == 10


def test_a_state_of_dlrover_is_counted_as_there(caplog: pytest.LogCaptureFixture) -> None:
    sampler = ElasticDistributedSampler(range(60), 3, 0, shuffle=False)
    sampler.load_state_dict({"completed_num": 24, "epoch": 1})
    assert (sampler.epoch, next(iter(sampler))) == (1, 24)
    assert sampler.state_dict(4, 2)["completed_num"] == 24
    sampler.load_state_dict({"completed_num": 130, "epoch": 0})
    assert next(iter(sampler)) == 10
    assert "counts 130 samples of a data set of 60" in caplog.text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"dataset_size": 21}, "made with dataset_size 21, and this sampler has 20"),
        ({"seed": 3}, "made with seed 3"),
        ({"shuffle": False}, "made with shuffle False"),
        ({"epoch": -1}, "epoch is -1"),
        ({"completed_num": "4"}, "completed_num is '4'"),
        ({"completed_num": 4.5}, "completed_num is 4.5"),
        ({"completed_num": float("nan")}, "completed_num is nan"),
        ({"completed_num": 2**63}, "completed_num is 9223372036854775808"),
        ({"iter_step": True}, "iter_step is True"),
    ],
)
def test_a_state_that_cannot_be_meant_is_refused_and_changes_nothing(
    change: dict[str, Any], what: str
) -> None:
    sampler = ElasticDistributedSampler(range(20), 2, 0)
    good = sampler.state_dict()
    with pytest.raises(ValueError, match=what):
        sampler.load_state_dict({**good, "epoch": 4, **change})
    assert sampler.state_dict() == good
