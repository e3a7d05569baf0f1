"""Nodes that are lost with their memory, and shards that come back from what other nodes hold of them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import Start
from launchers import ROOT, Run, until
from test_crashes import kill_supervisor

PACKAGE = {"PYTHONPATH": str(ROOT / "python")}
STEPS = 12
WAITS_AT = 8  # the first life goes no further

# Each rank has a shard of its own, and its part of a step is a function of rank and step.
TRAINS = """
import json, logging, os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, StorageType

place, redundancy = Path(sys.argv[1]), json.loads(sys.argv[2])
steps, waits_at = int(sys.argv[3]), int(sys.argv[4])
rank, generation = int(os.environ["RANK"]), int(os.environ["TROUPE_GENERATION"]) % 4096  # its count
told = []
logging.getLogger("troupe.checkpoint").setLevel(logging.INFO)
logging.getLogger("troupe.checkpoint").addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
dist.init_process_group("gloo")
world = dist.get_world_size()

def stepped(x, step):
    return x * 0.999 + torch.rand(50_000 + 1000 * rank, generator=torch.Generator().manual_seed(1000 * step + rank)) * 0.01

def say(name, what):
    (place / f"{name}-{rank}.part").write_text(json.dumps(what))
    (place / f"{name}-{rank}.part").rename(place / f"{name}-{rank}.json")

checkpointer = DdpCheckpointer(place / "checkpoints", local_shard_num=1, global_shard_num=world, **redundancy)
state = checkpointer.load_checkpoint() or {"step": 0, "x": torch.zeros(50_000 + 1000 * rank)}
say(f"resumed{generation}", {"step": state["step"], "told": told})
while state["step"] < steps:
    step = state["step"] + 1
    state = {"step": step, "x": stepped(state["x"], step)}
    assert checkpointer.save_checkpoint(step, state, storage_type=StorageType.MEMORY), told
    if step in (waits_at - 1, waits_at, steps - 1):
        held = checkpointer.wait_latest_copies(60)
        say(f"held{generation}", {"step": held, "told": told})
    while step == waits_at and generation < 2 and not (place / "go on").exists():  # until a node is lost
        time.sleep(0.02)
undisturbed = torch.zeros(50_000 + 1000 * rank)
for step in range(1, steps + 1):
    undisturbed = stepped(undisturbed, step)
assert torch.equal(undisturbed, state["x"]), "not the shard of an undisturbed run"
say("done", {"held": checkpointer.wait_latest_copies(60), "told": told})
os._exit(0)
"""


def said(place: Path, name: str, ranks: int) -> list[dict]:
    files = [place / f"{name}-{rank}.json" for rank in range(ranks)]
    until(lambda: all(f.exists() for f in files), 120, name)
    return [json.loads(f.read_text()) for f in files]


def lost(run: Run, node: int) -> None:
    """The launcher with all that it holds, its memory for images among it."""
    os.kill(run.launchers[node].pid, signal.SIGKILL)
    run.launchers[node].wait()


def training(start: Start, place: Path, redundancy: dict, nodes: int) -> Run:
    """A job whose ranks have all saved step WAITS_AT, and know that others hold it."""
    script = place / "train.py"
    script.write_text(TRAINS)
    arguments = [str(place), json.dumps(redundancy), str(STEPS), str(WAITS_AT)]
    run = start([str(script), *arguments], nodes=nodes, restarts=3, environment=PACKAGE)
    until(lambda: said(place, "held1", nodes)[0]["step"] == WAITS_AT, 120, "the last copies")
    return run


@pytest.mark.parametrize(
    ("redundancy", "nodes", "losing"),
    [
        ({"replica_count": 2}, 2, [1]),
        ({"parity": 2, "parity_group": 4, "copy_on_write": True}, 4, [1, 3]),
    ],
    ids=["a copy", "Reed-Solomon"],
)
def test_what_a_lost_node_had_in_memory_comes_from_the_others(
    redundancy: dict, nodes: int, losing: list[int], start: Start, tmp_path: Path
) -> None:
    run = training(start, tmp_path, redundancy, nodes)
    for node in losing:
        lost(run, node)
    for node in losing:
        run.launchers[node] = run.start_node(node)
        run.launchers.pop()
    assert run.wait(120) == [0] * nodes, "\n".join(run.err(node) for node in range(nodes))
    newest = max(int(f.name[7]) for f in tmp_path.glob("resumed*-0.json"))
    for rank, resumed in enumerate(said(tmp_path, f"resumed{newest}", nodes)):
        assert resumed["step"] == WAITS_AT
        origin = "pieces" if rank in losing else "memory"
        assert any(origin in line for line in resumed["told"]), (rank, resumed["told"])
    assert [rank["held"] for rank in said(tmp_path, "done", nodes)] == [STEPS] * nodes
    assert run.leftovers() == []


def test_a_node_supervisor_that_crashed_takes_copies_at_the_place_that_others_know(
    start: Start, tmp_path: Path
) -> None:
    run = training(start, tmp_path, {"replica_count": 2}, 2)
    kill_supervisor(run, 1)
    (tmp_path / "go on").write_text("")
    assert run.wait(120) == [0, 0], run.err(0) + run.err(1)
    assert not (tmp_path / "resumed2-0.json").exists()  # its workers have trained on
    assert [rank["held"] for rank in said(tmp_path, "done", 2)] == [STEPS] * 2
    assert run.leftovers() == []
