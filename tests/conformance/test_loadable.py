"""What torch.load refuses by default is told when it is first saved, and in one line when it is loaded."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import enum
import io
import pathlib
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from troupe.checkpoint import CheckpointError, DdpCheckpointer, StorageType, pickled
from troupe.checkpoint.loadable import refusal


class Colour(enum.Enum):
    RED = 1


@dataclass
class Data:
    x: int = 1


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))


def usual() -> dict[str, Any]:
    of = model()
    optimizer = torch.optim.AdamW(of.parameters())
    of(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    more = {"half": torch.ones(3, dtype=torch.bfloat16), "parameter": torch.nn.Parameter(torch.ones(2)), "size": torch.Size([1])}
    more |= {"dtype": torch.float32, "storage": torch.ones(3).untyped_storage(), "slice": torch.arange(10)[3:5]}
    return {"model": of.state_dict(), "optimizer": optimizer.state_dict(), "sparse": torch.eye(3).to_sparse(), **more}


VALUES: dict[str, Any] = {
    "number": 1, "bytes": b"abc", "complex": 1 + 2j, "large": 1 << 80, "set": {1, 2}, "counter": collections.Counter("ab"),
    "device": torch.device("cpu"), "random state": random.getstate(), "generator": torch.Generator().get_state(),
    "array": numpy.ones(3), "numpy's random state": numpy.random.get_state(), "scalar": numpy.float64(1), "numpy type": numpy.dtype("f4"),
    "namespace": argparse.Namespace(a=1), "frozen set": frozenset([1]), "path": pathlib.Path("/x"), "enum": Colour.RED, "data": Data(),
    "default": collections.defaultdict(list), "queue": collections.deque([1]), "decimal": decimal.Decimal(1),
    "date": datetime.datetime(2026, 1, 1), "class": Data, "function": torch.nn.functional.relu, "module": model(),
}  # fmt: skip


def is_refused(state: Any) -> bool:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    try:
        torch.load(file, weights_only=True)
    except pickle.UnpicklingError:
        return True
    return False


@pytest.mark.parametrize("name", VALUES)
def test_what_torch_load_refuses_is_known_from_the_pickle(name: str):
    state = usual() | {"deep": {"list": [0, VALUES[name]]}}
    why = refusal(state, pickled(state).pickle)
    assert bool(why) == is_refused(state), why
    if why:
        assert why.startswith("state['deep']['list'][1]") and "\n" not in why


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "load_checkpoint() cannot give it back" in one.getMessage()]


def test_it_is_told_once_with_the_entry_and_the_remedy(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with DdpCheckpointer(tmp_path) as checkpointer:
        for step in range(1, 6):  # a state whose structure changes with each save
            state = usual() | {"args": argparse.Namespace(lr=step), "log": ["x"] * step}
            assert checkpointer.save_checkpoint(step, state, storage_type=StorageType.MEMORY)
        [line] = told(caplog)
        assert "step 1 is saved" in line and "state['args'] has argparse.Namespace" in line and "add_safe_globals" in line
        assert checkpointer.save_checkpoint(6, usual() | {"args": 1, "rng": numpy.random.get_state()})
        assert "state['rng']" in told(caplog)[1] and len(told(caplog)) == 2
        assert checkpointer.wait_latest_checkpoint(60)
        with pytest.raises(CheckpointError, match=r"step 6 cannot be loaded: it has numpy\S+, .*refuses by default; load it with weights_only=False"):
            checkpointer.load_checkpoint()
        with pytest.raises(CheckpointError, match=r"rank_0.pt: it has numpy.*weights_only=False") as raised:
            checkpointer.load_checkpoint(str(tmp_path / "6/rank_0.pt"))
        assert "\n" not in str(raised.value)
        assert checkpointer.load_checkpoint(weights_only=False)["args"] == 1


def test_it_is_not_told_to_a_script_that_loads_everything_or_allows_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for step, allowed in ((1, []), (2, [argparse.Namespace])):
        with DdpCheckpointer(tmp_path) as checkpointer, torch.serialization.safe_globals(allowed):
            checkpointer.load_checkpoint(weights_only=bool(allowed))
            assert checkpointer.save_checkpoint(step, {"args": argparse.Namespace(a=1)})
            assert checkpointer.wait_latest_checkpoint(60)
    assert told(caplog) == []


def test_what_is_plain_is_never_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr("troupe.checkpoint.checkpointer.refusal", lambda *_: asked.append(1) or "")
    with DdpCheckpointer(tmp_path) as checkpointer:
        for step in range(3):
            state = {"model": model().state_dict(), "step": step, "log": [1.5] * step}
            assert checkpointer.save_checkpoint(step, state, storage_type=StorageType.MEMORY)
    assert asked == []
