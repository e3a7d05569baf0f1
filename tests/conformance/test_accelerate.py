"""Accelerate's states: what is kept is what save_state would have written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from troupe.checkpoint import StorageType, complete_steps
from troupe.checkpoint.accelerate import States


class Counter:
    count = 0

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]


def prepared() -> tuple[Accelerator, torch.nn.Module, torch.optim.Optimizer, Counter]:
    torch.manual_seed(0)
    accelerator, counter = Accelerator(cpu=True), Counter()
    model = torch.nn.Linear(200, 200)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    accelerator.register_for_checkpointing(counter)
    return accelerator, model, optimizer, counter


def step(accelerator: Accelerator, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    accelerator.backward(model(torch.randn(4, 200)).square().mean())
    optimizer.step()
    optimizer.zero_grad()


def test_a_state_is_what_accelerate_writes_and_comes_back(tmp_path: Path):
    accelerator, model, optimizer, counter = prepared()
    states = States(accelerator, tmp_path / "c")
    assert states.load() is None
    step(accelerator, model, optimizer)
    counter.count = 7
    assert states.save(1)
    accelerator.save_state(str(tmp_path / "own"))
    assert states.wait(60) and complete_steps(str(tmp_path / "c")) == [1]
    ours = tmp_path / "c/checkpoint-1"
    names = {path.name for path in (tmp_path / "own").iterdir()}
    assert {path.name for path in ours.iterdir() if not path.name.startswith((".", "troupe-"))} == names
    for name in names - {"optimizer.bin"}:
        assert (ours / name).read_bytes() == (tmp_path / "own" / name).read_bytes(), name
    step(accelerator, model, optimizer)
    assert states.save(2, StorageType.MEMORY)
    expected = [tensor.clone() for tensor in model.parameters()]
    drawn = torch.rand(3)
    step(accelerator, model, optimizer)
    counter.count = 9
    assert states.load() == 2
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))
    assert torch.equal(torch.rand(3), drawn) and counter.count == 7
    accelerator.load_state(str(ours))  # without us
    states.close()


def test_names_of_its_own_are_refused(tmp_path: Path):
    accelerator = Accelerator(cpu=True)
    accelerator.project_configuration.automatic_checkpoint_naming = True
    with pytest.raises(ValueError, match="automatic_checkpoint_naming"):
        States(accelerator, tmp_path)
