#!/usr/bin/env python3
"""A node of an ElasticJob is lost at a real API server: until its replacement is asked for, the smaller world trains, the whole one again.

Training is PyTorch's DDP by real processes; scheduler and kubelets are those of the tests. There is no room for the replacement until
the smaller world has trained. Each round has a job of its own: a rank whose pods end in a row waits longer each time. Needs root and
what `./x kubernetes` builds. Only ours: DLRover's limits are in the notes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import harness
from harness import Summary
from launchers import ROOT, actor_launcher

sys.path[:0] = [str(ROOT / "tests/kubernetes"), str(ROOT / "tests/kubernetes/apiserver"), str(ROOT / "tests/kubernetes/chart")]
from cluster import Cluster, cluster  # noqa: E402
from installed import DEFINITIONS, Operators, define  # noqa: E402
from jobs import TRAINING, Job  # noqa: E402

NODES, LOOKS_EVERY, WITHIN = 3, 0.005, 120.0
# What befalls which node.
LOSSES = {"its processes are killed": ("kill_pod", "worker-2"), "its machine falls silent": ("lose", "worker-1")}
REQUESTED, SMALLER, WHOLE = "until the request for its replacement", "until the smaller world's first step", "until the whole world's first step"


def until(condition: Callable[[], object], job: Job) -> float:
    """The time at which it is seen to hold."""
    ends = time.monotonic() + WITHIN
    while not condition():
        assert not job.cluster.trouble, job.cluster.trouble
        assert time.monotonic() < ends, job.told()
        time.sleep(LOOKS_EVERY)
    return time.monotonic()


def first_step(job: Job, nodes: int, after: int) -> float:
    """Of a world of so many nodes that is newer than a generation."""
    until(lambda: job.generation > after and len(job.world) == nodes, job)
    before = job.step
    return until(lambda: job.step > before, job)


def have_room(on: Cluster, machines: list[str], has_room: bool) -> None:
    for machine in machines:
        changed = on.server.patch(f"/api/v1/nodes/{machine}", {"spec": {"unschedulable": None if has_room else True}})
        assert changed.status == 200, changed.body


def lose_one(job: Job, machines: list[str], how: str, node: str) -> dict[str, float]:
    on, before = job.cluster, job.generation
    known = {pod["metadata"]["uid"] for pod in job.all("worker")}
    [gone] = [name for name in job.live() if name.endswith(node)]
    machine = job.machine(gone)
    have_room(on, machines, False)
    began = time.monotonic()
    if how == "lose":
        on.lose(machine)
    else:
        job.kill_pod(gone)
    asked = until(lambda: {pod["metadata"]["uid"] for pod in job.all("worker")} - known, job)
    smaller = first_step(job, NODES - 1, before)
    before = job.generation
    if how == "lose":
        on.repair(machine)
    have_room(on, machines, True)
    room = time.monotonic()
    whole = first_step(job, NODES, before)
    job.until(lambda: len(job.live()) == NODES)
    return {REQUESTED: asked - began, SMALLER: smaller - began, WHOLE: whole - room}


def begin(on: Cluster, machines: list[str], namespace: str) -> Job:
    job = Job(on, on.namespace(namespace), replicas=NODES, training=TRAINING)
    job.worker["restartCount"] = 100
    # The master's pod is on none of the machines that are lost.
    have_room(on, machines, False)
    job.apply()
    until(lambda: job.live("dlrover-master"), job)
    have_room(on, machines, True)
    job.trains(NODES)
    return job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="of each loss; default 10")
    parser.add_argument("--apiserver", type=Path, default=ROOT / "build/kubernetes", help="default build/kubernetes")
    chosen = parser.parse_args()
    if not (chosen.apiserver / "kube-apiserver").exists():
        sys.exit(f"{chosen.apiserver} has no kube-apiserver: ./x kubernetes builds it")
    found: dict[str, list[float]] = {}
    programs = Path(actor_launcher().program).parents[1]
    # One to spare: pods do not go back to a machine that has just been lost.
    machines = [f"machine-{number}" for number in range(1, NODES + 2)]
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory), chosen.apiserver, programs) as made:
        made.add_machine("head", 0)
        for number, machine in enumerate(machines, 1):
            made.add_machine(machine, number, **{"nvidia.com/gpu": 1})
        for definition in sorted(DEFINITIONS.glob("*.yaml")):
            define(made, definition)
        Operators(made)
        for turn in range(chosen.rounds):
            job = begin(made, machines, f"round-{turn}")
            for name, (how, node) in LOSSES.items():
                for what, took in lose_one(job, machines, how, node).items():
                    harness.progress(f"{turn + 1} of {chosen.rounds}: {name}: {what}: {took:.2f} s")
                    found.setdefault(f"{name}, {what} [s]", []).append(took)
            job.finish()
            job.until(lambda job=job: job.phase == "Succeeded")
    summaries = {what: Summary.of(all) for what, all in found.items()}
    harness.report(
        "replacement",
        f"A node of {NODES} is lost, s: median (p10 – p90) of {chosen.rounds} in turn, and the range",
        ["", "ours", "range"],
        [
            [what, str(one), f"{harness.short(min(all))} – {harness.short(max(all))}"]
            for (what, one), all in zip(summaries.items(), found.values(), strict=True)
        ],
        summaries,
        [
            "A start of PyTorch's workers is part of each first step. The whole world's counts from when there is room for the pod again.",
            "DLRover takes a silent node for lost after 600 s, looks at pods every 5 s and forms a new world in polls of 5 s.",
        ],
        harness.figures_without_peer(summaries, "a node of an ElasticJob is lost: "),
    )


if __name__ == "__main__":
    main()
