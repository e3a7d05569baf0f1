"""The device that stands in for an accelerator has the races that an accelerator has, and no others."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import accelerator
import pytest
import torch

accelerator.load()
fake = torch.fake

PATIENCE = 30  # seconds; nothing here takes any


@pytest.fixture(autouse=True)
def steered() -> Iterator[None]:
    yield
    for index in range(fake.device_count()):
        fake.go(index)
        fake.synchronize(index)


class Copy:
    """What a checkpoint does: a copy to the host beside the current stream, and an event behind it."""

    def __init__(self, source: torch.Tensor):
        self.target = torch.zeros(source.shape, dtype=source.dtype)
        self.stream = fake.Stream(source.device)
        self.stream.wait_stream(fake.current_stream(source.device))
        with fake.stream(self.stream):
            self.target.copy_(source, non_blocking=True)
            self.done = self.stream.record_event()

    def finished(self, device: int = 0) -> torch.Tensor:
        fake.go(device)
        self.done.synchronize()
        return self.target


def ones(device: str = "fake:0") -> torch.Tensor:
    return torch.ones(1000, device=device)


def all_are(tensor: torch.Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def test_a_copy_that_nobody_waits_for_sees_what_is_computed_later():
    source = ones()
    fake.hold(0)
    copy = Copy(source)
    source.add_(1)
    assert not copy.done.query()
    assert all_are(copy.target, 0)
    assert all_are(copy.finished(), 2)
    assert copy.done.query()


def test_a_copy_that_the_current_stream_waits_for_does_not():
    source = ones()
    fake.hold(0)
    copy = Copy(source)
    fake.current_stream(0).wait_event(copy.done)
    computing = threading.Thread(target=source.add_, args=(1,), daemon=True)
    computing.start()  # streams are current per thread; the default one is the same for both
    fake.until_waited_for(0)
    assert not copy.done.query()
    assert all_are(copy.finished(), 1)
    computing.join(PATIENCE)
    assert all_are(source.cpu(), 2)


def test_who_waits_for_a_stream_lets_python_go_on():
    source = ones()
    fake.hold(0)
    copy = Copy(source)
    fake.current_stream(0).wait_event(copy.done)
    steps = []

    def steer() -> None:
        fake.until_waited_for(0)
        steps.append("waited for")
        fake.go(0)

    steering = threading.Thread(target=steer, daemon=True)
    steering.start()
    assert source.untyped_storage().tolist()[:4] == [0, 0, 128, 63]
    steering.join(PATIENCE)
    assert steps == ["waited for"]
    assert copy.done.query()


def test_what_is_counted_and_what_is_held():
    fake.hold(1)
    before = fake.entries(1)
    source, elsewhere = ones("fake:1"), ones("fake:0")
    copies = [Copy(source), Copy(source)]
    here = Copy(elsewhere)
    assert before == 0
    assert fake.entries(1) >= 4  # a copy and an event of each
    here.done.synchronize()
    assert all_are(here.target, 1)
    for copy in copies:
        assert all_are(copy.finished(1), 1)
    fake.synchronize(1)
    assert fake.entries(1) == 0


def test_the_default_stream_is_not_held_and_only_copies_to_the_host_are_queued():
    source, target = ones(), torch.zeros(1000)
    fake.hold(0)
    target.copy_(source, non_blocking=True)
    fake.current_stream(0).synchronize()
    assert all_are(target, 1)
    with fake.stream(fake.Stream("fake:0")):
        source.copy_(torch.full((1000,), 5.0), non_blocking=True)
        assert all_are(source.cpu(), 5)
    assert fake.entries(0) == 0


@pytest.mark.parametrize("recorded", [False, True])
def test_memory_that_is_freed_under_a_copy(recorded):
    source = ones().view(torch.uint8)
    fake.hold(0)
    copy = Copy(source)
    if recorded:
        source.record_stream(copy.stream)
    expected = source.cpu() if recorded else torch.full_like(copy.target, 0xDD)
    del source
    assert torch.equal(copy.finished(), expected)


def test_memory_that_is_freed_after_its_own_stream_waits_for_the_copy():
    source = ones()
    fake.hold(0)
    copy = Copy(source)
    fake.current_stream(0).wait_event(copy.done)
    del source
    assert all_are(copy.finished(), 1)


def test_a_copy_that_fails_is_told_to_the_event_after_it():
    source = ones()
    fake.fail_next_copy()
    copy = Copy(source)
    with pytest.raises(RuntimeError, match="fake device error"):
        copy.done.synchronize()
    with pytest.raises(RuntimeError, match="fake device error"):
        copy.done.query()
    assert all_are(copy.target, 0)
    assert all_are(Copy(source).finished(), 1)


def test_current_devices_and_streams():
    side = fake.Stream("fake:1")
    assert (fake.current_device(), fake.current_stream()) == (0, fake.default_stream(0))
    with fake.stream(side):
        assert fake.current_stream("fake:1") == side
        assert fake.current_stream("fake:0") == fake.default_stream(0)
    assert fake.current_stream("fake:1") == fake.default_stream(1)
    with fake.device(1):
        assert torch.empty(1, device="fake").device == torch.device("fake:1")
    assert fake.current_device() == 0


def test_storages_and_views_share_memory():
    source = ones("fake:1")
    storage = source.untyped_storage()
    seen = torch.empty(0, dtype=torch.uint8, device="fake:1").set_(storage)
    assert seen.data_ptr() == storage.data_ptr() == source.data_ptr()
    assert (storage.device, seen.shape) == (torch.device("fake:1"), (4000,))
    seen.zero_()
    source.as_strided((10,), (100,)).add_(7)
    assert source[::100].tolist() == [7] * 10
    assert source.sum().item() == 70


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_it_trains_as_the_cpu_does(kind):
    here, there = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3, device="fake")
    there.load_state_dict(here.state_dict())
    for model in (here, there):
        optimizer = kind(model.parameters(), lr=0.1)
        inputs = torch.arange(8.0).view(2, 4).to(model.weight.device)
        for _ in range(2):
            model(inputs).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert there.state_dict()["weight"].device == torch.device("fake:0")
    torch.testing.assert_close(there.weight.cpu(), here.weight)


def test_archives_say_on_which_device_it_was():
    written = io.BytesIO()
    torch.save({name: torch.arange(3.0, device=name) for name in ("fake:0", "fake:1")}, written)
    for where, devices in ((None, ("fake:0", "fake:1")), ("cpu", ("cpu", "cpu"))):
        written.seek(0)
        read = torch.load(written, map_location=where)
        assert tuple(str(tensor.device) for tensor in read.values()) == devices
        assert [tensor.tolist() for tensor in read.values()] == [[0, 1, 2]] * 2


def test_pinned_memory_is_known_by_its_addresses():
    pinned = torch.empty(8, pin_memory=True)
    assert torch.from_numpy(pinned.numpy()[3:]).is_pinned()
    assert not torch.empty(8).is_pinned()
