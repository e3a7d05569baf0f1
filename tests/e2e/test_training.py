"""A worker is killed in the middle of DDP training: the weights must end up the same to the bit."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from conftest import ROOT, Start
from launchers import Run, until

STEPS = 300
CHECKPOINT_EVERY = 40
SMALL_MODEL = ["--width=32", "--layers=1", "--context=32", f"--steps={STEPS}"]
DEADLINE = 120.0  # eight imports of torch on a busy machine with two cores


def training(directory: Path) -> list[str]:
    script = str(ROOT / "demo" / "train_lm.py")
    return [script, f"--checkpoint-dir={directory}", f"--checkpoint-every={CHECKPOINT_EVERY}", *SMALL_MODEL]


def events(directory: Path, name: str) -> list[dict]:
    path = directory / "progress.jsonl"
    if not path.exists():
        return []
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [event for event in map(json.loads, whole) if event["event"] == name]


def final_weights(directory: Path) -> dict[str, torch.Tensor]:
    state = torch.load(directory / "checkpoint.pt", weights_only=True)
    assert state["step"] == STEPS
    return state["model"]


def kill_worker(run: Run, directory: Path, rank: int, after_step: int) -> None:
    def reached() -> bool:
        assert all(p.poll() is None for p in run.launchers), run.err()
        return any(event["step"] >= after_step for event in events(directory, "step"))

    until(reached, DEADLINE, f"step {after_step}")
    os.kill(int((directory / f"worker-{rank}.pid").read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    """The weights of a run of four ranks that nothing happened to."""
    from launchers import launcher_named

    directory = tmp_path_factory.mktemp("undisturbed")
    chosen = launcher_named(request.config.getoption("--launcher"))
    with Run(chosen, training(directory), directory, procs=4) as run:
        assert run.wait(DEADLINE) == [0], run.err()
    return final_weights(directory)


# By rank, the step after which it is killed. Every start is an import of torch by four, so two die in one run.
@pytest.mark.parametrize(("nodes", "procs", "deaths"), [pytest.param(1, 4, {2: 150}, marks=pytest.mark.long), (2, 2, {3: 100, 0: 220})])
def test_a_killed_worker_leaves_no_trace_in_the_weights(
    undisturbed: dict[str, torch.Tensor],
    start: Start,
    tmp_path: Path,
    nodes: int,
    procs: int,
    deaths: dict[int, int],
) -> None:
    directory = tmp_path / "checkpoints"
    run = start(training(directory), nodes=nodes, procs=procs, restarts=3)
    for victim, step in deaths.items():
        kill_worker(run, directory, victim, after_step=step)
    assert run.wait(DEADLINE) == [0] * nodes, run.err()

    resumed = [event["step"] for event in events(directory, "ready")]
    assert resumed[0] == 0
    assert len(resumed) == 1 + len(deaths), "one failure, one restart"
    for step, killed in zip(resumed[1:], deaths.values(), strict=True):
        newest = killed // CHECKPOINT_EVERY * CHECKPOINT_EVERY
        assert step >= newest, "training goes on from the newest checkpoint"
    weights = final_weights(directory)
    assert weights.keys() == undisturbed.keys()
    for name, expected in undisturbed.items():
        assert torch.equal(weights[name], expected), name
    assert run.leftovers() == []
