"""Windows of micro-batches: the same weights as in the full world, however a script orders its calls."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from troupe.elastic import ElasticTrainer, GradientState
from troupe.elastic.accumulation import window_of

Step = Callable[[Any, Any, torch.Tensor], None]


@pytest.mark.parametrize(
    ("micro_batches", "world", "window"),
    [(8, 8, 1), (8, 4, 2), (8, 2, 4), (8, 1, 8), (8, 3, 3), (9, 2, 5), (8, 16, 1), (1, 3, 1), (7, 2, 4)],
)
def test_windows(micro_batches: int, world: int, window: int) -> None:
    assert window_of(micro_batches, world) == window


def test_any_window_is_the_nearest() -> None:
    for micro_batches in range(1, 60):
        for world in range(1, 60):
            chosen = window_of(micro_batches, world)
            best = min(range(1, 61), key=lambda n: (abs(n * world - micro_batches), -n))
            assert chosen == best


def batches(number: int) -> list[torch.Tensor]:
    return list(torch.randn(number, 4, 6, generator=torch.Generator().manual_seed(1)))


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))


def loss(module: Any, batch: torch.Tensor) -> torch.Tensor:
    return module(batch).square().mean()


def zero_before(module: Any, optimizer: Any, batch: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss(module, batch).backward()
    optimizer.step()


def zero_after(module: Any, optimizer: Any, batch: torch.Tensor) -> None:
    loss(module, batch).backward()
    optimizer.step()
    optimizer.zero_grad()


def zero_between(module: Any, optimizer: Any, batch: torch.Tensor) -> None:
    value = loss(module, batch)
    optimizer.zero_grad()
    value.backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
    optimizer.step()


def weights(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def reference(window: int, clipped: bool) -> torch.Tensor:
    """As a world trains in which each micro-batch of a step has a rank of its own."""
    module = model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    for first in range(0, 12, window):
        optimizer.zero_grad()
        sum(loss(module, b) for b in batches(12)[first : first + window]).div(window).backward()
        if clipped:
            torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
        optimizer.step()
    return weights(module)


@pytest.mark.parametrize("order", [zero_before, zero_after])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_a_window_is_one_step_of_its_mean(order: Step, window: int) -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=window)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    assert trainer.gradient_accumulation_steps == window
    for number, batch in enumerate(batches(12), 1):
        with trainer.step(fix_total_batch_size=True):
            assert trainer.sync_gradients == (number % window == 0)
            order(module, optimizer, batch)
    assert trainer.num_steps == 12 // window
    torch.testing.assert_close(weights(module), reference(window, clipped=False))


def test_gradients_are_clipped_as_the_mean() -> None:
    """A script that clips in each micro-batch clips parts of the sum as well; the last one decides."""
    module = model()
    trainer = ElasticTrainer(module, micro_batches=3)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    for number, batch in enumerate(batches(12), 1):
        with trainer.step(fix_total_batch_size=True):
            optimizer.zero_grad()
            loss(module, batch).backward()
            if trainer.sync_gradients:
                torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
            optimizer.step()
    torch.testing.assert_close(weights(module), reference(3, clipped=True))


def test_without_a_fixed_batch_each_micro_batch_is_a_step() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=4)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    for batch in batches(12):
        with trainer.step():
            zero_between(module, optimizer, batch)
    torch.testing.assert_close(weights(module), reference(1, clipped=True))


def test_sums_for_scripts_that_divide_themselves() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=4, average=False)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    for batch in batches(12):
        with trainer.step(fix_total_batch_size=True):
            (loss(module, batch) / trainer.gradient_accumulation_steps).backward()
            optimizer.step()
            optimizer.zero_grad()
    torch.testing.assert_close(weights(module), reference(4, clipped=False))


def test_the_schedule_follows_the_optimizer_within_steps_and_the_script_outside() -> None:
    module = model()
    inner = torch.optim.SGD(module.parameters(), lr=1.0)
    trainer = ElasticTrainer(module, micro_batches=2)
    optimizer, schedule = trainer.prepare(inner, torch.optim.lr_scheduler.StepLR(inner, 1, 0.5))
    for batch in batches(4):
        with trainer.step(fix_total_batch_size=True):
            zero_before(module, optimizer, batch)
            schedule.step()
    assert schedule.get_last_lr() == [0.25]
    schedule.step()
    assert schedule.get_last_lr() == [0.125] and inner.param_groups[0]["lr"] == 0.125
    saved = schedule.state_dict()
    schedule.load_state_dict(saved)
    assert schedule.last_epoch == 3


def test_a_schedule_of_the_prepared_optimizer() -> None:
    module = model()
    optimizer = ElasticTrainer(module).prepare(torch.optim.SGD(module.parameters(), lr=1.0))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    zero_before(module, optimizer, batches(1)[0])
    schedule.step()
    assert optimizer.optimizer.param_groups[0]["lr"] == 0.5


def test_the_prepared_optimizer_is_the_optimizer() -> None:
    module = model()
    inner = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    optimizer = ElasticTrainer(module).prepare(inner)
    steps: list[object] = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    zero_before(module, optimizer, batches(1)[0])
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert optimizer.state is inner.state and optimizer.defaults is inner.defaults and steps == [1]
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    assert len(inner.param_groups) == 2
    optimizer.load_state_dict(optimizer.state_dict())
    again = pickle.loads(pickle.dumps(optimizer))
    assert len(again.param_groups) == 2 and "SGD" in repr(again)


def test_a_scaler_within_a_window_is_refused() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=2)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1))
    scaler = torch.amp.GradScaler("cpu")
    before = weights(module)
    with pytest.raises(RuntimeError, match="only if trainer.sync_gradients"):
        with trainer.step(fix_total_batch_size=True):
            scaler.scale(loss(module, batches(1)[0])).backward()
            scaler.step(optimizer)
    assert torch.equal(weights(module), before)


def test_a_scaler_at_the_end_of_windows() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=4)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for batch in batches(12):
        with trainer.step(fix_total_batch_size=True):
            optimizer.zero_grad()
            scaler.scale(loss(module, batch)).backward()
            if trainer.sync_gradients:
                scaler.step(optimizer)
                scaler.update()
    torch.testing.assert_close(weights(module), reference(4, clipped=False))


def test_a_step_that_a_scaler_left_out_leaves_no_gradients() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=2)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1))
    for number in range(2):
        with trainer.step(fix_total_batch_size=True):
            (loss(module, batches(1)[0]) * float("inf")).backward()
            optimizer.zero_grad()  # the step was left out
    assert all(p.grad is None for p in module.parameters())


def test_a_micro_batch_that_failed_is_made_again() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=3)
    optimizer = trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    for number, batch in enumerate(batches(12)):
        with pytest.raises(MemoryError):
            with trainer.step(fix_total_batch_size=True):
                raise MemoryError
        with trainer.step(fix_total_batch_size=True):
            zero_before(module, optimizer, batch)
    torch.testing.assert_close(weights(module), reference(3, clipped=False))


def test_a_backward_pass_outside_of_the_step_is_refused() -> None:
    module = model()
    trainer = ElasticTrainer(module, micro_batches=2)
    trainer.prepare(torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(RuntimeError, match="no gradient of the model's parameters"):
        with trainer.step(fix_total_batch_size=True):
            loss(module, batches(1)[0])


def test_the_full_world_of_dlrovers_variables(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WORKER_NUM", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    trainer = ElasticTrainer(model())
    trainer.prepare(MagicMock())
    assert trainer.gradient_accumulation_steps == 8 and not caplog.records
    trainer = ElasticTrainer(model(), micro_batches=3)
    trainer.prepare(MagicMock())
    assert trainer.gradient_accumulation_steps == 3
    monkeypatch.setenv("WORKER_NUM", "0")
    trainer = ElasticTrainer(model())
    trainer.prepare(MagicMock())
    assert trainer.gradient_accumulation_steps == 1
    monkeypatch.setenv("WORKER_NUM", "four")
    with pytest.raises(ValueError, match="WORKER_NUM is 'four'"):
        ElasticTrainer(model()).prepare(MagicMock())
    monkeypatch.setenv("WORKER_NUM", "9" * 9)
    with pytest.raises(ValueError, match="is 1999999998"):
        ElasticTrainer(model()).prepare(MagicMock())


def test_a_world_that_does_not_divide_the_batch_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    ElasticTrainer(model(), micro_batches=8).prepare(MagicMock())
    assert "has 9 micro-batches instead of 8: a world of 3 cannot divide that" in caplog.text


def test_a_model_that_is_none_is_only_needed_for_windows() -> None:
    trainer = ElasticTrainer(MagicMock())
    trainer.prepare(MagicMock(), MagicMock())
    with trainer.step():
        pass
    assert trainer.num_steps == 1
    trainer.reset()
    assert trainer.num_steps == 0
    with pytest.raises(TypeError, match="no torch.nn.Module"):
        ElasticTrainer(MagicMock(), micro_batches=2).prepare(MagicMock())


@pytest.mark.parametrize("number", [0, -1, 1.0, True, "2", 1 << 21])
def test_numbers_that_are_none(number: Any) -> None:
    with pytest.raises(ValueError, match="micro_batches is"):
        ElasticTrainer(model(), micro_batches=number)


def test_outside_of_a_micro_batch_a_script_knows_what_it_does() -> None:
    state = GradientState()
    assert state.may_step() and state.may_zero()
    state.begin(2)
    assert not state.may_step() and state.may_zero()
    state.computed = True
    assert not state.may_zero()
    state.end()
    assert state.may_step() and state.may_zero() and state.pending == 1
