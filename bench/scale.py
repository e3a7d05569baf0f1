#!/usr/bin/env python3
"""Very many nodes on real links before one real master: time until all are started, memory and processor time for each.

Everything is on this machine: `actor-master` is one process, and node_crowd.cpp is the other ends of
all links in another. Each node has its own TCP connection with TLS 1.3 and beats as often as its master expects. Only ours.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass

import harness
from footprint import cpu_ns, memory_mib
from harness import Summary
from launchers import ROOT, TAG, base_environment, free_port

RELEASE = ROOT / "build" / "release"
IDLE_SECONDS = 10
RACK = 32  # as in node_crowd.cpp
# As in node_crowd.cpp: here one processor speaks for all nodes, which takes it longer than the default lease.
LEASE = "keep_alive_interval=120,keep_alive_max_attempt=1"


@dataclass(frozen=True)
class Usage:
    rss_mib: float
    cpu_ms: float


def usage(pid: int) -> Usage:
    return Usage(memory_mib(pid)[1], cpu_ns(pid) / 1e6)


def measure(nodes: int) -> dict[str, float]:
    port = free_port()
    listen = [RELEASE / "bin" / "actor-master", "-q", f"--listen=127.0.0.1:{port}", f"--nnodes={nodes - RACK}:{nodes}", f"--rdzv-conf={LEASE}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = base_environment() | {TAG: "scale"}
    with subprocess.Popen(listen, stdin=subprocess.DEVNULL, env=environment) as master:
        try:
            time.sleep(1)  # it listens, and idles
            before = usage(master.pid)
            crowd = [RELEASE / "bench" / "node_crowd", str(port), str(nodes)]
            with subprocess.Popen(crowd, **pipes) as peers:
                stages = dict(line.split() for line in itertools.islice(peers.stdout, 3))
                joined, joined_peers = usage(master.pid), usage(peers.pid)
                time.sleep(2)
                calm, calm_peers = usage(master.pid), usage(peers.pid)
                time.sleep(IDLE_SECONDS)
                idle, idle_peers = usage(master.pid), usage(peers.pid)
                peers.stdin.write("x")
                peers.stdin.flush()
                again = float(peers.stdout.readline().split()[1])
                lost = usage(master.pid)
                time.sleep(2)  # for a generation too many
                peers.stdin.close()
                generations = float(peers.stdout.readline().split()[1])
        finally:
            master.kill()
    return {
        "first dial → all are welcome [ms]": float(stages["welcome"]),
        "first dial → all have their seat [ms]": float(stages["seat"]),
        "first dial → all are told to start [ms]": float(stages["start"]),
        "master: CPU to get there, per node [µs]": (joined.cpu_ms - before.cpu_ms) / nodes * 1e3,
        "nodes' ends: the same [µs]": joined_peers.cpu_ms / nodes * 1e3,
        "master: memory per node [KiB]": (idle.rss_mib - before.rss_mib) / nodes * 1024,
        "nodes' ends: the same [KiB]": idle_peers.rss_mib / nodes * 1024,
        "master: beats, % of a core for all": (idle.cpu_ms - calm.cpu_ms) / IDLE_SECONDS / 10,
        "nodes' ends: the same": (idle_peers.cpu_ms - calm_peers.cpu_ms) / IDLE_SECONDS / 10,
        f"{RACK} nodes lost at once → the others are told to start [ms]": again,
        "generations that took": generations,
        "master: CPU for that, per node [µs]": (lost.cpu_ms - idle.cpu_ms) / nodes * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    parser.add_argument("--nodes", type=int, default=1_000, help="default 1000")
    chosen = parser.parse_args()
    samples: dict[str, list[float]] = defaultdict(list)
    for number in range(chosen.rounds):
        harness.progress(f"round {number + 1} of {chosen.rounds}")
        for what, value in measure(chosen.nodes).items():
            samples[what].append(value)
    found = {what: Summary.of(values) for what, values in samples.items()}
    harness.report(
        "scale",
        f"{chosen.nodes:,} nodes on real links before one master: median (p10 – p90) of {chosen.rounds}",
        ["", "ours"],
        [[what, str(one)] for what, one in found.items()],
        found,
        ["limit: two TLS handshakes' arithmetic for each node; a TCP connection's buffers in the kernel are not counted."],
        harness.figures_without_peer(found, f"{chosen.nodes:,} nodes: "),
    )


if __name__ == "__main__":
    main()
