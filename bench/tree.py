#!/usr/bin/env python3
"""actor-shell tree: from kill -9 of a worker until an answer shows it, and what one answer costs.

The kill is seen by questions one after the other, each a program of its own, as a person or a script asks: a question that is
asked before the end is known does not show it. Two real nodes with two workers each; then nodes of node_crowd.cpp before one
master. Only ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import harness
from harness import Summary
from launchers import ROOT, TAG, Run, actor_launcher, base_environment, free_port, until

RELEASE = ROOT / "build" / "release"
SHELL = RELEASE / "bin" / "actor-shell"
WAITS = """#!/bin/sh
echo $$ > "$1/pid-$RANK.part" && mv "$1/pid-$RANK.part" "$1/pid-$RANK-$TORCHELASTIC_RESTART_COUNT"
exec sleep 600
"""


def ask(port: int, *options: str) -> tuple[str, float]:
    """The answer, and how long the whole program took, in ms."""
    began = time.monotonic()
    answer = subprocess.run(
        [SHELL, "tree", f"--master=127.0.0.1:{port}", *options], check=True, capture_output=True, text=True
    )
    return answer.stdout, (time.monotonic() - began) * 1e3


def fresh_kills(row: dict | None) -> int:
    """Rows that tell of a SIGKILL within the last second."""
    if row is None:
        return 0
    end = row["last_end"]
    fresh = bool(end and end["bad"] and "SIGKILL" in end["why"] and end["ago_ms"] < 1000)
    return fresh + sum(fresh_kills(child) for child in row["children"])


def pid_of(directory: Path, rank: int, restart: int) -> int:
    file = directory / f"pid-{rank}-{restart}"
    until(file.exists, 30, f"rank {rank} of restart {restart}")
    return int(file.read_text())


def real_nodes(rounds: int) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {"seen": [], "answer": []}
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        worker = directory / "worker.sh"
        worker.write_text(WAITS)
        worker.chmod(0o755)
        run = Run(actor_launcher(), [str(worker), place], directory, 2, 2, rounds + 1, python=False)
        with run:
            for turn in range(rounds):
                ranks = [pid_of(directory, rank, turn) for rank in range(4)]
                until(lambda: fresh_kills(tree(run.port)) == 0, 10, "calm")
                figures["answer"].append(ask(run.port)[1])
                os.kill(ranks[3], signal.SIGKILL)
                killed = time.monotonic()
                while fresh_kills(tree(run.port)) == 0:
                    if time.monotonic() > killed + 10:
                        raise TimeoutError(f"no answer shows the kill:\n{ask(run.port)[0]}")
                figures["seen"].append((time.monotonic() - killed) * 1e3)
                harness.progress(f"{turn + 1} of {rounds}: seen after {figures['seen'][-1]:.0f} ms")
    return figures


def tree(port: int) -> dict | None:
    return json.loads(ask(port, "--json", "--troubled")[0])["tree"]


def listens(port: int) -> bool:
    with socket.socket() as dialler:
        return dialler.connect_ex(("127.0.0.1", port)) == 0


def crowd(nodes: int, rounds: int) -> dict[str, list[float]]:
    """Time and size of answers with so many nodes."""
    port = free_port()
    listen = [RELEASE / "bin" / "actor-master", "-q", f"--listen=127.0.0.1:{port}", f"--nnodes={nodes}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    figures: dict[str, list[float]] = {"ms": [], "KiB of JSON": [], "lines": [], "ms for one node": []}
    with subprocess.Popen(listen, stdin=subprocess.DEVNULL, env=base_environment() | {TAG: "tree"}) as master:
        try:
            until(lambda: listens(port), 10, "a master that listens")
            with subprocess.Popen([RELEASE / "bench" / "node_crowd", str(port), str(nodes)], **pipes) as peers:
                list(itertools.islice(peers.stdout, 3))
                for _ in range(rounds):
                    document, took = ask(port, "--json")
                    figures["ms"].append(took)
                    figures["KiB of JSON"].append(len(document) / 1024)
                    figures["lines"].append(ask(port)[0].count("\n"))
                    figures["ms for one node"].append(ask(port, "--node=node-00007")[1])
                peers.stdin.close()
        finally:
            master.kill()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="default 20")
    parser.add_argument("--crowd", type=int, action="append", help="nodes; default 64 and 1000")
    chosen = parser.parse_args()
    real = real_nodes(chosen.rounds)
    found = {
        "two nodes: kill → an answer of actor-shell tree that shows it [ms]": real["seen"],
        "two nodes: actor-shell tree, start to end [ms]": real["answer"],
    }
    for nodes in chosen.crowd or [64, 1000]:
        for what, values in crowd(nodes, max(3, chosen.rounds // 4)).items():
            found[f"{nodes:,} nodes: {what}"] = values
    summaries = {what: Summary.of(values) for what, values in found.items()}
    harness.report(
        "tree",
        f"actor-shell tree: median (p10 – p90) of {chosen.rounds}, and the range",
        ["", "ours", "range"],
        [
            [what, str(one), f"{harness.short(min(found[what]))} – {harness.short(max(found[what]))}"]
            for what, one in summaries.items()
        ],
        summaries,
        ["Every answer is a program's start, a TLS handshake and its end."],
        harness.figures_without_peer(summaries),
    )


if __name__ == "__main__":
    main()
