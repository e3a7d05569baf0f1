"""What test_devices.py shows with a device of its own, on a real one, its driver and its pinned memory. Skipped where there is none."""

from __future__ import annotations

import logging

import pytest
import torch

from troupe.checkpoint import Arena, DdpCheckpointer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device")

CYCLES = 200_000_000  # of the device: about 0.1 s
COUNT = 16 << 20  # of numbers: 64 MiB


@pytest.fixture
def nothing_is_complained_of(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="troupe.checkpoint"):
        yield
    assert not caplog.records  # memory that could not be pinned, among others


def loaded(arena: Arena, step: int, **how: object) -> dict:
    arena.wait()
    image = arena.newest()
    assert image and image.step == step
    return arena.load(image, **how)


def test_the_image_is_of_the_moment_of_the_call(nothing_is_complained_of):
    weight = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    expected = weight.cpu()
    with Arena() as arena:
        arena.prepare({"w": weight})
        arena.wait_until_prepared()
        for step in range(1, 6):
            torch.cuda._sleep(CYCLES)  # training is behind: what it has queued comes first
            weight.add_(1)
            expected.add_(1)
            arena.save(step, {"w": weight, "temporary": weight * 2, "host": expected.clone()})
            weight.mul_(2)
            weight.div_(2)
            found = loaded(arena, step, map_location="cpu")
            assert torch.equal(found["w"], expected) and torch.equal(found["host"], expected)
            assert torch.equal(found["temporary"], expected * 2)
            del found
        assert loaded(arena, 5)["w"].device == weight.device


def test_the_optimizers_step_waits(nothing_is_complained_of):
    model = torch.nn.Linear(4096, 4096, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.rand(64, 4096, device="cuda")
    with Arena(optimizers=[optimizer]) as arena:
        for step in range(1, 6):
            model(inputs).square().mean().backward()
            before = {name: one.detach().cpu() for name, one in model.state_dict().items()}
            arena.save(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
            optimizer.step()
            found = loaded(arena, step, map_location="cpu")["model"]
            assert all(torch.equal(found[name], one) for name, one in before.items())
            del found


def test_a_job_that_saves_and_goes_on(tmp_path, nothing_is_complained_of):
    weight = torch.rand(COUNT, device="cuda")
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(1, {"w": weight})
        assert checkpointer.wait_latest_checkpoint(60)
    assert torch.equal(torch.load(tmp_path / "1" / "rank_0.pt")["w"], weight)
    with DdpCheckpointer(tmp_path) as checkpointer:
        state = checkpointer.load_checkpoint()
        assert state["w"].device.type == "cpu" and torch.equal(state["w"], weight.cpu())


def test_pinned_memory_of_images_of_other_sizes(nothing_is_complained_of):
    with Arena() as arena:
        for step, mib in enumerate((9, 70, 3, 64, 200, 1, 90), 1):
            weight = torch.rand(mib << 18, device="cuda")
            arena.save(step, {"w": weight})
            arena.wait()
            image = arena.newest()
            assert image and image.step == step
            with open(image.path, "rb") as file:  # no slot is mapped
                assert torch.equal(torch.load(file, map_location="cpu")["w"], weight.cpu())
