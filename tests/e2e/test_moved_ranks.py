"""Nodes that get other ranks, with what was saved in their memory: each rank goes on from its own part, wherever it lies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from launchers import ROOT, Launcher
from own_master import OwnMaster

WITHIN = 120.0
PACKAGE = {"PYTHONPATH": str(ROOT / "python")}
SAVED = 3  # steps of each life

# Each rank has a part of its own, of a size of its own. Step 1 alone is written to the disk. A life saves some steps and waits
# to be told which node is to fail; none: the job has succeeded.
TRAINS = """
import json, logging, os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, StorageType

place, options, saved = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
rank, node = int(os.environ["RANK"]), os.environ["WHERE"]
life = (place / "life").read_text()
told = []
logger = logging.getLogger("troupe.checkpoint")
logger.setLevel(logging.INFO)
logger.addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
dist.init_process_group("gloo")

def state_of(step):
    drawn = torch.Generator().manual_seed(1000 * step + rank)
    return {"step": step, "x": torch.rand(20_000 + 1000 * rank, generator=drawn)}

checkpointer = DdpCheckpointer(place / "checkpoints", global_shard_num=dist.get_world_size(), **options)
state = checkpointer.load_checkpoint() or state_of(0)
resumed = {"node": node, "step": state["step"], "own": torch.equal(state["x"], state_of(state["step"])["x"]), "told": told}
for step in range(state["step"] + 1, state["step"] + 1 + saved):
    storage = StorageType.DISK if step == 1 else StorageType.MEMORY
    assert checkpointer.save_checkpoint(step, state_of(step), storage_type=storage), told
    assert checkpointer.wait_latest_checkpoint(60), told
    held = checkpointer.wait_latest_copies(60)
(place / f"part-{life}-{rank}").write_text(json.dumps({**resumed, "held": held}))
(place / f"part-{life}-{rank}").rename(place / f"life-{life}-{rank}")
while not (place / f"fails-{life}").exists():
    time.sleep(0.02)
failing = (place / f"fails-{life}").read_text()
if failing in (node, "none"):
    os._exit(failing == node)
time.sleep(600)
"""


class Training:
    """A job of nodes that have come in this order; its lives are counted from 1."""

    def __init__(self, master: OwnMaster, place: Path, procs: int, options: dict) -> None:
        self.master, self.place, self.procs = master, place, procs
        self.options = {"local_shard_num": procs, **options}
        self.life = 1
        (place / "life").write_text("1")
        (place / "train.py").write_text(TRAINS)

    def start(self, node: str) -> None:
        worker = [str(self.place / "train.py"), str(self.place), json.dumps(self.options), str(SAVED)]
        options = [f"--nproc-per-node={self.procs}"]
        self.master.start_node(node, worker, options=options, environment=PACKAGE)

    def come(self, nodes: str) -> None:
        for count, node in enumerate(nodes, 1):
            self.start(node)
            self.master.until(lambda n=count: f"joined ({n} of" in self.master.err(), f"node {node}")

    def resumed(self) -> list[dict]:
        """What this life's ranks have begun with, by rank, when they have saved their steps."""
        world = len(self.master.nodes) * self.procs
        files = [self.place / f"life-{self.life}-{rank}" for rank in range(world)]
        self.master.until(lambda: all(f.exists() for f in files), f"life {self.life}", WITHIN)
        return [json.loads(f.read_text()) for f in files]

    def next_life(self) -> None:
        self.life += 1
        (self.place / "life").write_text(str(self.life))

    def fails(self, node: str) -> None:
        said = self.place / f"fails-{self.life}"
        if node != "none":
            self.next_life()
        (self.place / "said").write_text(node)
        (self.place / "said").rename(said)

    def is_arranged_anew(self, racks: str) -> None:
        """By a master that reads another file; the node with rank 0 fails."""
        (self.place / "racks").write_text(racks)
        self.master.end_master()
        self.master.start_master()
        self.master.until(lambda: "racks is taken for" in self.master.err(), "the file is read")
        self.fails("a")

    def ends(self) -> None:
        self.fails("none")
        self.master.end()


Made = Callable[..., Training]


@pytest.fixture
def training(launcher: Launcher, tmp_path: Path) -> Iterator[Made]:
    made: list[OwnMaster] = []

    def start(nodes: str, racks: str, *, procs: int = 1, **options: object) -> Training:
        (tmp_path / "racks").write_text(racks)
        (tmp_path / "said-by").mkdir()
        by_network = [f"--topology={tmp_path}/racks", "--topology-worse-by=0"]
        made.append(OwnMaster(launcher, tmp_path / "said-by", len(nodes), *by_network))
        one = Training(made[0], tmp_path, procs, options)
        one.come(nodes)
        return one

    yield start
    for master in made:
        master.close()


def racks(*of: str) -> str:
    return "".join(f"{rack} hall {node}\n" for rack, nodes in enumerate(of) for node in nodes)


def nodes_of(found: Sequence[dict]) -> str:
    return "".join(rank["node"] for rank in found)


def sources(found: Sequence[dict], step: int) -> list[str]:
    """Where each rank has its own part of that step from."""
    assert [(rank["step"], rank["own"]) for rank in found] == [(step, True)] * len(found), found
    lines = [[line for line in rank["told"] if f"step {step}" in line] for rank in found]
    return [line.partition("comes from ")[2] for [line] in lines]


def test_two_nodes_that_swap_ranks_and_three_that_rotate(training: Made) -> None:
    job = training("abcd", racks("ab", "cd"))
    assert nodes_of(job.resumed()) == "abcd"
    job.is_arranged_anew(racks("ac", "bd"))
    swapped = job.resumed()
    assert nodes_of(swapped) == "acbd"
    assert sources(swapped, SAVED) == ["memory", "a peer, rank 2", "a peer, rank 1", "memory"]
    job.is_arranged_anew(json.dumps({"hall": {"x": ["a", "b"], "y": ["d"]}, "room": {"z": ["c"]}}))
    rotated = job.resumed()
    assert nodes_of(rotated) == "abdc"
    assert sources(rotated, 2 * SAVED) == ["memory", *(f"a peer, rank {rank}" for rank in (3, 1, 2))]
    job.ends()


@pytest.mark.long
def test_nodes_of_two_ranks_that_swap(training: Made) -> None:
    job = training("abcd", racks("ab", "cd"), procs=2)
    assert nodes_of(job.resumed()) == "aabbccdd"
    job.is_arranged_anew(racks("ac", "bd"))
    swapped = job.resumed()
    assert nodes_of(swapped) == "aaccbbdd"
    peers = [f"a peer, rank {rank}" for rank in (4, 5, 2, 3)]
    assert sources(swapped, SAVED) == ["memory"] * 2 + peers + ["memory"] * 2
    job.ends()


@pytest.mark.parametrize(
    ("redundancy", "step", "expected"),
    [
        ({"replica_count": 2}, SAVED, ["memory", "pieces at other nodes", "a peer, rank 1", "memory"]),
        pytest.param({}, 1, ["disk"] * 4, marks=pytest.mark.long),
    ],
    ids=["with copies", "without"],
)
def test_a_node_that_is_lost_and_another_one_that_gets_its_rank(
    training: Made, redundancy: dict, step: int, expected: list[str]
) -> None:
    job = training("abcd", racks("abc", "de"), **redundancy)
    begun = job.resumed()
    assert nodes_of(begun) == "abcd"
    assert {rank["held"] for rank in begun} == {SAVED if redundancy else None}
    job.next_life()
    job.master.lose_node("b")
    job.start("e")
    found = job.resumed()
    # The newcomer hangs beside the last node; the free rank is among the others.
    assert nodes_of(found) == "aced"
    assert sources(found, step) == expected
    job.ends()
