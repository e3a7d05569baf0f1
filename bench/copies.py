#!/usr/bin/env python3
"""Shards in other nodes' memory: what a save with copies stalls, until they are there, and from a node's loss to the next step.

Two nodes on this machine, one rank each, MEMORY saves with and without `replica_count=2`. The peer is what DLRover does: the ranks
exchange their whole shards inside the save, by an all-gather of gloo.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from harness import Figure, Summary, short
from launchers import ROOT, Run, actor_launcher, until

SAVES = 4

TRAINS = """import json, os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, StorageType
place, mib, saves = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rank, generation = int(os.environ["RANK"]), int(os.environ["TROUPE_GENERATION"]) % 4096  # its count
dist.init_process_group("gloo")

def say(name, what):
    (place / f"{name}-{rank}.part").write_text(json.dumps(what))
    (place / f"{name}-{rank}.part").rename(place / f"{name}-{rank}.json")

def processor_time():
    spent = 0
    for child in Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_text().strip() == "troupe-node":
            spent += sum(int(n) for n in Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13])
    return spent / os.sysconf("SC_CLK_TCK")

def checkpointer(**how):
    return DdpCheckpointer(place / "kept", local_shard_num=1, global_shard_num=2, **how)

def saved(ours, step):
    dist.barrier()
    began = time.monotonic()
    assert ours.save_checkpoint(step, {"step": step, "x": x}, storage_type=StorageType.MEMORY)
    return time.monotonic() - began

if os.environ.get("ALONE"):
    x = torch.ones(mib * 262144)
    with checkpointer() as ours:
        ours.prepare({"step": 0, "x": x})
        found = {"save": [saved(ours, step) for step in range(saves)]}
    shards = [torch.empty(mib << 20, dtype=torch.uint8) for _ in range(2)]
    found["gather"] = []
    for _ in range(saves):
        dist.barrier()
        began = time.monotonic()
        dist.all_gather(shards, x.view(torch.uint8))
        found["gather"].append(time.monotonic() - began)
    say("alone", found)
    os._exit(0)

ours = checkpointer(replica_count=2)
state = ours.load_checkpoint()
if state:
    assert bool((state["x"] == 1 + rank).all())
    say(f"resumed{generation}", {"at": time.monotonic(), "step": state["step"]})
    os._exit(0)
x = torch.ones(mib * 262144) * (1 + rank)
ours.prepare({"step": 0, "x": x})
found = {"save with copies": [], "until held": [], "processor": []}
for step in range(saves):
    spent = processor_time()
    found["save with copies"].append(saved(ours, step))
    began = time.monotonic()
    assert ours.wait_latest_copies(120) == step
    found["until held"].append(time.monotonic() - began)
    found["processor"].append(processor_time() - spent)
say("copied", found)
while True:
    time.sleep(1)
"""


def said(run: Run, place: Path, name: str) -> list[dict]:
    files = [place / f"{name}-{rank}.json" for rank in range(2)]

    def there() -> bool:
        if name != "resumed" and any(p.poll() not in (None, 0) for p in run.launchers):
            raise RuntimeError(f"the job ended early:\n{run.err(0)}{run.err(1)}")
        return all(f.exists() for f in files)

    until(there, 180, name)
    return [json.loads(f.read_text()) for f in files]


def job(place: Path, mib: int, rate: int, **environment: str) -> Run:
    script = place / "train.py"
    script.write_text(TRAINS)
    return Run(
        actor_launcher(), [str(script), str(place), str(mib), str(SAVES)], place, 2, 1, 9, True,
        options=[f"--copy-rate={rate}"],
        environment={"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip


def measure(mib: int, rate: int, figures: dict[str, list[float]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with job(Path(directory), mib, rate, ALONE="1") as run:
            add(said(run, Path(directory), "alone"), figures)
            run.wait(60)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with job(place, mib, rate) as run:
            add(said(run, place, "copied"), figures)
            lost = time.monotonic()
            os.kill(run.launchers[1].pid, signal.SIGKILL)
            run.launchers[1].wait()
            run.launchers[1] = run.start_node(1)
            run.launchers.pop()
            resumed = until(lambda: sorted(place.glob("resumed*-0.json")), 180, "a load")[-1]
            ranks = said(run, place, resumed.name.partition("-")[0])
            assert all(one["step"] == SAVES - 1 for one in ranks)
            figures["node lost → both have their shards"].append(max(one["at"] for one in ranks) - lost)


def add(ranks: list[dict], figures: dict[str, list[float]]) -> None:
    """Each save of the slower rank; the first of them touches memory for the first time."""
    for name in ranks[0]:
        both = sum if name == "processor" else max
        figures[name] += [both(each) for each in zip(*(one[name] for one in ranks), strict=True)][1:]


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=512, help="of each rank's state"),
            p.add_argument("--rate", type=int, default=0, help="--copy-rate of the launchers"),
        ),
    )
    figures: dict[str, list[float]] = defaultdict(list)
    for number in range(chosen.rounds):
        harness.progress(f"round {number + 1}")
        measure(chosen.mib, chosen.rate, figures)
    names = {
        "save": "MEMORY save without copies: the call",
        "save with copies": "the same with copies: the call",
        "gather": "all-gather of gloo, which a save would wait for",
        "until held": "copies: from the end of the call until both are held",
        "processor": "processor time of both node supervisors for that",
        "node lost → both have their shards": "a node lost, a new one started → both have their shards",
    }
    summaries = {name: Summary.of([1000 * one for one in figures[name]]) for name in names}
    held = chosen.mib / 1024 / summaries["until held"].median * 1000
    harness.report(
        "copies",
        f"two nodes, {chosen.mib} MiB for each rank, ms: median (p10 – p90) of {chosen.rounds} jobs",
        ["", "ms"],
        [[text, str(summaries[name])] for name, text in names.items()],
        {name: vars(summary) for name, summary in summaries.items()},
        [f"copies: {short(held)} GiB/s in each direction at once, TLS with a token, on the processors that the ranks use, too."],
        [
            Figure(
                f"two nodes, {chosen.mib} MiB each: a save with copies: the call", "ms",
                summaries["save with copies"], "gloo's all-gather", summaries["gather"],
            ),
            Figure("a save with copies: until both are held", "ms", summaries["until held"]),
            Figure(
                "a node lost → both ranks have their shards, from copies", "ms",
                summaries["node lost → both have their shards"],
            ),
        ],  # fmt: skip
    )


if __name__ == "__main__":
    main()
