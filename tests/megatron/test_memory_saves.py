"""Steps of Megatron's that are in memory alone, when workers end for good, and when a node is lost."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from frameworks import Start
from launchers import Run, processes_tagged, until

SCRIPT = Path(__file__).with_name("memory_saves.py")
STEPS = 4
WITHIN = 300
How = tuple[str, str, str]  # format, tensor parallel size, distributed optimizer


def job(start: Start, what: str, place: Path, how: How, steps: int, *more: str, **options: object) -> Run:
    return start([str(SCRIPT), what, str(place), *how, str(steps), *more], **options)


def said(place: Path, what: str) -> list[dict]:
    return [json.loads((place / f"{what}-{rank}.json").read_text()) for rank in range(2)]


def saved(run: Run, place: Path, after: list[dict] | None = None) -> list[dict]:
    """By both ranks of one life, the first or one after another."""
    than = after[0]["life"] if after else -1

    def there() -> list[dict] | None:
        assert run.launchers[0].poll() is None, run.err()[-4000:]
        lives = {int(file.name.split("-")[1]) for file in place.glob("saved-*-0.json")}
        if not lives or max(lives) <= than or not (place / f"saved-{max(lives)}-1.json").exists():
            return None
        return [one | {"life": max(lives)} for one in said(place, f"saved-{max(lives)}")]

    return until(there, WITHIN, "a life that has saved")


def by_megatron(start: Start, what: str, place: Path, how: How, steps: int) -> list[dict]:
    run = job(start, what, place, how, steps, procs=2)
    assert run.wait(WITHIN) == [0], run.err()[-4000:]
    return said(place, what)


def kill_a_worker(run: Run) -> None:
    workers = [pid for pid in processes_tagged(run.tag) if SCRIPT.name in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(workers[-1], signal.SIGKILL)


HOWS = pytest.mark.parametrize("how", [("torch", "2", "false"), ("torch_dist", "2", "false"), ("torch_dist", "1", "true")], ids="-".join)


@HOWS
def test_the_last_step_in_memory_is_megatrons_to_read_when_no_restart_is_left(start: Start, tmp_path: Path, how: How) -> None:
    run = job(start, "train", tmp_path, how, STEPS, procs=2, restarts=1)
    checkpoints = tmp_path / "checkpoints"
    first = saved(run, tmp_path)
    assert [one["step"] for one in first] == [STEPS, STEPS]
    assert not list(checkpoints.glob("iter_*")) and not (checkpoints / "latest_checkpointed_iteration.txt").exists()
    kill_a_worker(run)
    again = saved(run, tmp_path, first)
    assert [one["begun"] for one in again] == [STEPS, STEPS]
    assert any(f"step {STEPS} comes from memory" in line for line in again[0]["told"])
    kill_a_worker(run)
    assert run.wait(WITHIN) != [0]
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == str(2 * STEPS)
    theirs = by_megatron(start, "theirs", tmp_path, how, 2)
    assert [one["found"] for one in theirs] == [[2 * STEPS, 20 * STEPS]] * 2
    assert [one["before"] for one in theirs] == [one["digest"] for one in again]
    undisturbed = by_megatron(start, "undisturbed", tmp_path, how, 2 * STEPS + 2)
    assert [one["after"] for one in theirs] == [one["after"] for one in undisturbed]


@HOWS
def test_a_node_that_is_lost_with_its_memory_goes_on_from_the_other_nodes(start: Start, tmp_path: Path, how: How) -> None:
    run = job(start, "train", tmp_path, how, STEPS, "2", nodes=2, restarts=3)
    first = saved(run, tmp_path)
    assert [one["step"] for one in first] == [STEPS, STEPS]
    os.kill(run.launchers[1].pid, signal.SIGKILL)
    run.launchers[1].wait()
    run.launchers[1] = run.start_node(1)
    run.launchers.pop()
    again = saved(run, tmp_path, first)
    assert [(one["begun"], one["step"]) for one in again] == [(STEPS, 2 * STEPS)] * 2
    assert any("comes from pieces" in line for one in again for line in one["told"]), again
    (tmp_path / "end").touch()
    assert run.wait(WITHIN) == [0, 0]
    assert not list((tmp_path / "checkpoints").glob("iter_*"))
    undisturbed = by_megatron(start, "undisturbed", tmp_path, how, 2 * STEPS)
    assert [one["digest"] for one in again] == [one["after"] for one in undisturbed]
