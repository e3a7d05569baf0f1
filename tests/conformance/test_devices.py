"""Tensors of a device: the image is of the moment of the save, whatever the device does and however slow it copies."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable, Iterator

import accelerator
import pytest
import torch

from troupe.checkpoint import Arena, CheckpointError, DdpCheckpointer, StorageType, devices

accelerator.load()
fake = torch.fake

PATIENCE = 30  # seconds; nothing here takes any
MIB = 1 << 20
COUNT = 3 * MIB  # of numbers in a tensor that is copied for a while


class Driver:
    """Keeps a list of what it was shown."""

    refusal = ""
    pinned: dict[int, int]
    unpinned: list[int]

    def __init__(self, index: int):
        self.index = index

    @classmethod
    def reset(cls) -> None:
        cls.pinned, cls.unpinned, cls.refusal = {}, [], ""

    def pin(self, address: int, count: int) -> str:
        if not self.refusal:
            self.pinned[address] = count
        return self.refusal

    def unpin(self, address: int) -> None:
        del self.pinned[address]
        self.unpinned.append(address)


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Driver]]:
    Driver.reset()
    monkeypatch.setitem(devices.PINNINGS, "fake", Driver)
    yield Driver
    go_on()


def go_on() -> None:
    for index in range(fake.device_count()):
        fake.go(index)
        fake.synchronize(index)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as opened:
        yield opened
        go_on()


def loaded(arena: Arena, step: int) -> dict:
    arena.wait()
    image = arena.newest()
    assert image and image.step == step
    return arena.load(image, map_location="cpu")


def wide(device: str = "fake:0") -> torch.Tensor:
    return torch.arange(COUNT, dtype=torch.float32).to(device)


class Beside:
    """A call by another thread, to see what it waits for."""

    def __init__(self, call: Callable, *arguments: object):
        self._thread = threading.Thread(target=call, args=arguments, daemon=True)
        self._thread.start()

    def waits(self) -> bool:
        fake.until_waited_for(0)
        return self._thread.is_alive()

    def ends(self) -> bool:
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()


def test_a_state_of_two_devices_and_main_memory(arena: Arena):
    shared = torch.arange(12.0, device="fake:1")
    state = {
        "here": torch.arange(5.0),
        "there": wide(),
        "views": [shared[:3], shared.view(3, 4).t()],
        "empty": torch.zeros(0, device="fake:0"),
        "half": torch.ones(7, dtype=torch.bfloat16, device="fake:1"),
        "step": 7,
    }
    assert arena.save(7, state) is True
    found = loaded(arena, 7)
    assert torch.equal(found["here"], state["here"])
    assert torch.equal(found["there"], state["there"].cpu())
    assert torch.equal(found["views"][1], torch.arange(12.0).view(3, 4).t())
    assert found["views"][0].untyped_storage().data_ptr() == found["views"][1].untyped_storage().data_ptr()
    assert found["empty"].shape == (0,) and found["step"] == 7
    assert torch.equal(found["half"], torch.ones(7, dtype=torch.bfloat16))


def test_the_file_names_the_devices_as_torch_save_does(arena: Arena):
    arena.save(1, {"w": torch.ones(3, device="fake:1")})
    arena.wait()
    image = arena.newest()
    assert image
    assert arena.load(image)["w"].device == torch.device("fake:1")


def test_a_state_in_main_memory_is_whole_when_the_call_returns(arena: Arena, driver: type[Driver]):
    nothing = torch.zeros(0, device="fake:0")
    assert arena.save(1, {"w": torch.ones(8 * MIB), "nothing": nothing}) is False
    assert arena.newest() is not None
    assert not driver.pinned


def test_what_the_device_does_next_waits_for_the_copy(arena: Arena):
    weight = wide()
    before = weight.cpu()
    fake.hold(0)
    arena.save(1, {"w": weight})
    assert arena.newest() is None
    training = Beside(weight.add_, 1)
    assert training.waits()
    fake.go(0)
    assert torch.equal(loaded(arena, 1)["w"], before)
    assert training.ends()
    assert torch.equal(weight.cpu(), before + 1)


def test_what_the_device_was_told_before_comes_first(arena: Arena):
    weight, other = wide(), wide() + 1
    scratch = torch.empty(COUNT)
    # The device's memory is this process's: a copy "to the host" is work of the device that changes a tensor there.
    address = (ctypes.c_ubyte * weight.nbytes).from_address(weight.data_ptr())
    same_memory = torch.frombuffer(address, dtype=torch.float32)
    fake.hold(0)
    with fake.stream(fake.Stream("fake:0")):
        for _ in range(20):
            scratch.copy_(other, non_blocking=True)
        same_memory.copy_(other, non_blocking=True)
        arena.save(1, {"w": weight})
    fake.go(0)
    assert torch.equal(loaded(arena, 1)["w"], other.cpu())


@pytest.fixture
def training() -> Iterator[tuple[Arena, torch.nn.Module, torch.optim.Optimizer]]:
    model = torch.nn.Linear(512, 512, device="fake:0")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, foreach=False)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    with Arena(optimizers=[optimizer]) as arena:
        yield arena, model, optimizer
        go_on()


def test_the_optimizers_step_waits_for_what_it_changes_and_nothing_else_does(training, monkeypatch):
    arena, model, optimizer = training
    before = model.weight.detach().cpu()
    fake.hold(0)
    arena.save(1, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    forward = Beside(lambda: model(torch.ones(4, 512, device="fake:0")).sum().item())
    assert forward.ends() and arena.newest() is None
    step = Beside(optimizer.step)
    assert step.waits()
    fake.go(0)
    assert step.ends()
    found = loaded(arena, 1)
    assert torch.equal(found["model"]["weight"], before)
    assert not torch.equal(model.weight.detach().cpu(), before)
    monkeypatch.setattr(arena._devices, "_wait_before_step", lambda: pytest.fail("it is closed"))
    arena.close()
    optimizer.step()


def test_what_is_not_the_optimizers_is_waited_for_at_once(training):
    arena, model, optimizer = training
    average = torch.zeros(1000, device="fake:0")
    fake.hold(0)
    arena.save(1, {"average": average, "model": model.state_dict()})
    updating = Beside(average.add_, 1)
    assert updating.waits()
    fake.go(0)
    assert updating.ends()
    assert torch.equal(loaded(arena, 1)["average"], torch.zeros(1000))


def test_what_is_freed_after_the_call_is_saved(arena: Arena):
    weight = wide()
    fake.hold(0)
    arena.save(1, {"w": weight * 1})
    fake.go(0)
    assert torch.equal(loaded(arena, 1)["w"], weight.cpu())


def test_a_device_that_fails_costs_that_save_alone(arena: Arena):
    weight = wide()
    arena.save(1, {"w": weight})
    fake.fail_next_copy()
    arena.wait()
    arena.save(2, {"w": weight})
    with pytest.raises(CheckpointError, match="the device failed while it was copied"):
        arena.wait()
    assert loaded(arena, 1) is not None
    arena.save(3, {"w": weight})
    assert torch.equal(loaded(arena, 3)["w"], weight.cpu())


def test_a_device_that_hangs_is_told_of(arena: Arena, monkeypatch: pytest.MonkeyPatch):
    weight = wide()
    fake.hold(0)
    arena.save(1, {"w": weight})
    assert arena._arrival
    with pytest.raises(CheckpointError, match=r"has not copied the last save's tensors within 0 s"):
        arena._arrival.wait(0)
    with pytest.raises(CheckpointError, match="its work does not go on"):
        arena.close(0)
    fake.go(0)
    assert torch.equal(loaded(arena, 1)["w"], weight.cpu())


def test_what_has_no_data(arena: Arena):
    arena.save(1, {"w": torch.ones(3, device="meta")})
    found = arena.load(arena.found()[0])["w"]
    assert found.device.type == "meta" and found.shape == (3,)
    with pytest.raises(CheckpointError, match="a tensor is on meta: it has no data"):
        arena.save(2, {"w": torch.ones(3, device="meta").untyped_storage()})


# ---- Pinned memory ----


def test_memory_is_pinned_once_but_for_its_end(arena: Arena, driver: type[Driver]):
    state = {"w": wide(), "more": wide()}  # 24 MiB
    arena.prepare(state)
    arena.wait_until_prepared()
    assert list(driver.pinned.values()) == [22 * MIB] * 2
    before = dict(driver.pinned)
    for step in range(1, 6):
        arena.save(step, {**state, "note": "." * step * 300})
        assert torch.equal(loaded_copy(arena, step), wide().cpu())
    assert driver.pinned == before and not driver.unpinned
    arena.close()
    assert not driver.pinned


def loaded_copy(arena: Arena, step: int) -> torch.Tensor:
    """Read from the file, so that no slot is mapped."""
    arena.wait()
    image = arena.newest()
    assert image and image.step == step
    with open(image.path, "rb") as file:
        return torch.load(file, map_location="cpu")["w"]


def test_no_copy_goes_across_the_end_of_what_is_pinned(
    arena: Arena, driver: type[Driver], monkeypatch: pytest.MonkeyPatch
):
    copies: list[tuple[int, int]] = []
    really = torch.Tensor.copy_

    def noted(into: torch.Tensor, *arguments: object, **options: object) -> torch.Tensor:
        copies.append((into.data_ptr(), into.data_ptr() + into.nbytes))
        return really(into, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "copy_", noted)
    arena.save(1, {"w": wide(), "more": wide()})
    arena.wait()
    [(begin, count)] = driver.pinned.items()
    assert any(end == begin + count for _, end in copies)
    assert not any(first < begin + count < end for first, end in copies)


def test_smaller_and_larger_images_in_pinned_slots(arena: Arena, driver: type[Driver]):
    for step, count in enumerate((9, 2, 11, 30, 1, 25), 1):
        arena.save(step, {"w": wide(), "more": torch.ones(count, MIB, device="fake:0")})
        assert torch.equal(loaded_copy(arena, step), wide().cpu())
        image = arena.newest()
        assert image
        for address, size in driver.pinned.items():
            assert ctypes.string_at(address + size - 1, 1) is not None  # else: SIGBUS
    assert driver.unpinned


def test_a_driver_that_refuses_is_told_once_and_all_is_saved(
    arena: Arena, driver: type[Driver], caplog: pytest.LogCaptureFixture
):
    driver.refusal = "no such luck (801)"
    with caplog.at_level(logging.WARNING, logger="troupe.checkpoint"):
        for step in (1, 2, 3):
            arena.save(step, {"w": wide()})
            assert torch.equal(loaded_copy(arena, step), wide().cpu())
    [told] = [record.getMessage() for record in caplog.records]
    assert told == (
        "10 MiB of memory could not be pinned, so that copies from devices take longer: no such luck (801)"
    )


def test_a_device_whose_driver_is_not_known_is_told_once(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.delitem(devices.PINNINGS, "fake")
    with caplog.at_level(logging.WARNING, logger="troupe.checkpoint"):
        arena.save(1, {"w": wide()})
        arena.save(2, {"w": wide()})
    assert [record.getMessage() for record in caplog.records] == [
        "memory is not pinned for fake devices: copies from there take longer"
    ]
    assert torch.equal(loaded(arena, 2)["w"], wide().cpu())


# ---- With all that comes behind ----


def test_a_checkpoint_of_a_device_on_the_disk(tmp_path):
    weight = wide()
    with DdpCheckpointer(tmp_path) as checkpointer:
        fake.hold(0)
        assert checkpointer.save_checkpoint(5, {"w": weight})
        assert not (tmp_path / "dlrover_latest.txt").exists()
        fake.go(0)
        assert checkpointer.wait_latest_checkpoint(PATIENCE)
        assert checkpointer.save_checkpoint(6, {"w": weight + 1}, storage_type=StorageType.MEMORY)
    found = torch.load(tmp_path / "5" / "rank_0.pt", map_location="cpu")
    assert torch.equal(found["w"], weight.cpu())
    with DdpCheckpointer(tmp_path) as checkpointer:
        state = checkpointer.load_checkpoint()
    assert state["w"].device.type == "cpu"
    assert torch.equal(state["w"], weight.cpu())


def test_what_all_have_stays_while_the_next_step_is_copied(tmp_path):
    weight = torch.arange(COUNT, dtype=torch.float32)
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(10, {"w": weight})
    with DdpCheckpointer(tmp_path) as checkpointer:
        weight = checkpointer.load_checkpoint()["w"].to("fake:0")
        arena = checkpointer._arena
        assert arena
        for step in (11, 12, 13, 14):
            fake.hold(0)
            assert checkpointer.save_checkpoint(step, {"w": weight}, storage_type=StorageType.MEMORY)
            meanwhile = arena.newest()
            fake.go(0)
            arena.wait()
            assert meanwhile and meanwhile.step == step - 1


def test_a_failed_copy_to_be_written_is_told_when_it_is_waited_for(tmp_path):
    with DdpCheckpointer(tmp_path) as checkpointer:
        fake.fail_next_copy()
        assert checkpointer.save_checkpoint(5, {"w": wide()})
        assert not checkpointer.wait_latest_checkpoint(PATIENCE)
    assert not (tmp_path / "dlrover_latest.txt").exists()
