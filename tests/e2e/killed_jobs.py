"""Jobs of frameworks whose ranks are killed at random moments, and say in files of a directory what they have in memory."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import torch
from launchers import ROOT, until
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

ENVIRONMENT = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/conformance'}", "OMP_NUM_THREADS": "1"}
KILLS, WITHIN = int(os.environ.get("KILLS", "1")), 180.0
# In a worker, which has `place`, `rank` and `begun_with`: this step is in memory.
SAY = """
import json, os
def say(step, begun_with):
    part = place / f"{rank}.part"
    part.write_text(json.dumps({"pid": os.getpid(), "begun_with": begun_with, "step": step}))
    part.rename(place / f"{rank}.json")
"""


def told(place: Path, rank: int) -> dict[str, Any]:
    try:
        return json.loads((place / f"{rank}.json").read_text())
    except FileNotFoundError:
        return {"pid": 0, "step": 0}


def has_come(place: Path, step: int, killed: set[int], ranks: int = 2) -> list[dict[str, Any]]:
    """What all ranks have said, as soon as they have this step in memory and none of them is one of those that were killed."""

    def rows() -> list[dict[str, Any]] | None:
        found = [told(place, rank) for rank in range(ranks)]
        return found if all(row["step"] >= step and row["pid"] not in killed | {0} for row in found) else None

    return until(rows, WITHIN, f"step {step}")


def kill_at_random_moments(place: Path, steps: int) -> None:
    """KILLS times, in a job of two ranks and so many steps; each life begins with what all ranks had in memory, or later."""
    chance, killed = random.Random(), set[int]()
    for kill in range(KILLS):
        at = told(place, 0)["step"] + chance.randrange(1, max(2, steps // (KILLS + 2)))
        rows = has_come(place, at, killed)
        killed |= {row["pid"] for row in rows}
        os.kill(chance.choice(rows)["pid"], signal.SIGKILL)
        until(lambda: not {told(place, 0)["pid"]} & (killed | {0}), WITHIN, f"life {kill + 1}")
        assert told(place, 0)["begun_with"] >= at, "a step that all ranks had in memory is lost"


def of_dcp(directory: Path) -> dict[str, Any]:
    """A state of torch.distributed.checkpoint, as PyTorch alone reads it."""
    state: dict[str, Any] = {}
    reader = FileSystemReader(directory)
    _load_state_dict(state, storage_reader=reader, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    return state


def same_weights(one: Path, other: Path, ranks: int = 2) -> bool:
    for rank in range(ranks):
        a, b = (torch.load(place / f"end-{rank}.pt")["weights"] for place in (one, other))
        if not all(torch.equal(x, y) for x, y in zip(a, b, strict=True)):
            return False
    return True
