"""Batches: as torch's loader makes them, until their size changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler


def sizes(loader: ElasticDataLoader) -> list[int]:
    return [len(batch) for batch in loader]


def say(file: Path, size: Any, version: Any = 1) -> None:
    # A new file each time: two changes within a tick of the clock differ as well.
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"dataloader": {"batch_size": size, "version": version}}))
    part.rename(file)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
def test_without_a_change_it_is_torchs_loader(drop_last: bool, workers: int) -> None:
    how: dict[str, Any] = {"batch_size": 4, "drop_last": drop_last, "num_workers": workers}
    ours, theirs = ElasticDataLoader(range(22), **how), DataLoader(range(22), **how)
    for _ in range(2):
        assert [b.tolist() for b in ours] == [b.tolist() for b in theirs]
    assert len(ours) == len(theirs) and ours.batch_size == theirs.batch_size == 4


def test_shuffling_is_torchs() -> None:
    def seen(loader: type[DataLoader]) -> list[list[int]]:
        random = torch.Generator().manual_seed(3)
        return [b.tolist() for b in loader(range(22), 4, shuffle=True, generator=random)]

    assert seen(ElasticDataLoader) == seen(DataLoader)


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_size_changes_in_the_middle(drop_last: bool) -> None:
    loader = ElasticDataLoader(range(20), batch_size=4, drop_last=drop_last)
    seen = []
    for batch in loader:
        seen.append(batch.tolist())
        if len(seen) == 2:
            loader.update_batch_size(5)
            assert loader.batch_size == loader.get_batch_size() == 5
    assert [len(b) for b in seen] == ([4, 4, 5, 5] if drop_last else [4, 4, 5, 5, 2])
    assert sum(seen, []) == list(range(18 if drop_last else 20))
    assert len(loader) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_places_are_counted_in_samples_when_the_size_changes(workers: int) -> None:
    sampler = ElasticDistributedSampler(range(200), 2, 0, shuffle=False)
    loader = ElasticDataLoader(range(200), batch_size=4, sampler=sampler, num_workers=workers)
    for number, batch in enumerate(loader, 1):
        assert sampler.state_dict()["completed_num"] == int(batch[-1]) + 2
        if number == 3:
            loader.update_batch_size(9)
    assert sampler.state_dict()["completed_num"] == 200


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_a_loader_s_state_has_its_batches_and_length_in_any_world(workers: int, world: int) -> None:
    def loader(world: int) -> ElasticDataLoader:
        sampler = ElasticDistributedSampler(range(64), world, 0, shuffle=False)
        return ElasticDataLoader(range(64), batch_size=4, sampler=sampler, num_workers=workers)

    first = loader(2)
    for number, _ in enumerate(first, 1):
        if number == 3:
            state = json.loads(json.dumps(first.state_dict()))
            break
    assert (state["completed_num"], state["batches"]) == (24, 3)
    again = loader(world)
    again.load_state_dict(state)
    left = -(-40 // (4 * world))
    assert len(again) == 3 + left
    seen = 0
    for seen, batch in enumerate(again, 1):
        if seen == 1:
            assert batch.tolist() == [24 + place * world for place in range(4)]
            assert again.state_dict()["batches"] == 4
    assert seen == left
    assert again.state_dict()["batches"] == 3 + left
    again.sampler.set_epoch(1)
    assert len(again) == len(loader(world)) == len(list(again)) == again.state_dict()["batches"]


def test_of_another_sampler_a_loader_has_no_state() -> None:
    assert not hasattr(ElasticDataLoader(range(8), batch_size=4), "state_dict")


def test_persistent_workers_and_a_loop_that_was_left() -> None:
    sampler = ElasticDistributedSampler(range(64), 2, 1)
    loader = ElasticDataLoader(
        range(64), batch_size=4, sampler=sampler, num_workers=1, persistent_workers=True
    )
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for number, _ in enumerate(loader, 1):
            assert sampler.state_dict()["completed_num"] == number * 8
            if epoch == 1 and number == 3:
                break
    assert number == 8


def test_what_was_prepared_for_a_loop_that_was_left_counts_for_no_other() -> None:
    sampler = ElasticDistributedSampler(range(64), 2, 1)
    loader = ElasticDataLoader(range(64), batch_size=4, sampler=sampler, num_workers=1)
    next(iter(loader))
    loader.update_batch_size(3)
    for number, _ in enumerate(loader, 1):
        assert sampler.state_dict()["completed_num"] == min(number * 6, 64)


def test_two_iterations_at_once() -> None:
    loader = ElasticDataLoader(range(12), batch_size=4)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)] == [
        (list(range(n, n + 4)),) * 2 for n in (0, 4, 8)
    ]


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(10))


def test_a_stream_has_batches_of_changed_size_as_well() -> None:
    loader = ElasticDataLoader(Stream(), batch_size=4)
    loader.update_batch_size(3)
    assert sizes(loader) == [3, 3, 3, 1]


@pytest.mark.parametrize(
    "how",
    [
        {"batch_size": None},
        {"batch_sampler": BatchSampler(SequentialSampler(range(9)), 3, False)},
        {"batch_size": 2, "in_order": False},
    ],
)
def test_what_cannot_be_counted_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ElasticDataLoader"):
        ElasticDataLoader(range(9), **how)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "3", 2**21])
def test_sizes_that_are_none(size: Any) -> None:
    loader = ElasticDataLoader(range(9), batch_size=2)
    with pytest.raises(ValueError, match="batch_size is"):
        loader._change(size)
    assert loader.batch_size == 2


# ---- The file ----


def test_the_file_is_followed_by_its_version(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    loader = ElasticDataLoader(range(100), batch_size=4, config_file=file)
    assert loader.batch_size == 4
    say(file, 10)
    assert sizes(loader) == [10] * 10
    say(file, 20, version=1)
    assert sizes(loader) == [10] * 10, "the version that is known"
    say(file, 20, version=2)
    seen = []
    for number, batch in enumerate(loader, 1):
        seen.append(len(batch))
        if number == 2:
            say(file, 30, version=3)
            loader.update_batch_size()
    assert seen == [20, 20, 30, 30]


def test_a_loop_looks_at_the_file_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    loader = ElasticDataLoader(range(24), batch_size=1, config_file=file)
    seen = []
    for batch in loader:
        seen.append(len(batch))
        if len(seen) == 1:
            say(file, 4)
    assert seen == [1] * 16 + [4, 4]


def test_the_file_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say(tmp_path / "settings.json", 7)
    monkeypatch.setenv("DLROVER_PARAL_CONFIG_PATH", str(tmp_path / "settings.json"))
    assert ElasticDataLoader(range(9), batch_size=2).batch_size == 7


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"dataloader": 3}',
        b'{"dataloader": {"batch_size": "4", "version": 1}}',
        b'{"dataloader": {"batch_size": -4, "version": 1}}',
        b'{"dataloader": {"batch_size": 9999999, "version": 1}}',
        b"[" * 100_000,
        b" " * ((1 << 20) + 1),
    ],
)
def test_a_bad_file_is_told_once_and_changes_nothing(
    tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "settings.json").write_bytes(text)
    loader = ElasticDataLoader(range(8), batch_size=2, config_file=tmp_path / "settings.json")
    assert sizes(loader) == [2, 2, 2, 2]
    assert [r.getMessage().split(":")[0] for r in caplog.records] == [
        f"{tmp_path}/settings.json says no batch size"
    ]


def test_a_file_of_other_settings_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "settings.json").write_text('{"optimizer": {"version": 1}}')
    loader = ElasticDataLoader(range(8), batch_size=2, config_file=tmp_path / "settings.json")
    assert loader.batch_size == 2 and not caplog.records
