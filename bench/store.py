#!/usr/bin/env python3
"""The workers' store next to torch's own servers: operations per second, many connections, a barrier, memory."""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import PYTHON, ROOT

BUILD = ROOT / "build" / "release"
LOAD = BUILD / "bench" / "store_load"
CLIENTS, DEPTH, SECONDS = 64, 32, 1.0
CROWD = 2_000
ONE_AT_A_TIME = "add, one at a time [1000/s]"

Samples = dict[str, dict[str, list[float]]]

TORCH = """
import sys
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv={libuv})
print(store.port, flush=True)
sys.stdin.read()
"""
SERVERS = {
    "ours": [BUILD / "tests" / "store_peer"],
    "torch, libuv": [PYTHON, "-c", TORCH.format(libuv=True)],
    "torch, legacy": [PYTHON, "-c", TORCH.format(libuv=False)],
}


@contextmanager
def server(command: list[str | Path]) -> Iterator[tuple[int, int]]:
    """Its port and process number."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.stdin.close()


def load(*arguments: object) -> float:
    done = subprocess.run(
        [LOAD, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=120
    )
    return float(done.stdout)


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError(f"process {pid} is gone")


def crowd(port: int, pid: int) -> tuple[float, float]:
    """ms until a crowd is connected, and KiB the server grew by for each."""
    before = resident_kib(pid)
    with subprocess.Popen(
        [LOAD, "connect", str(port), str(CROWD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as clients:
        assert clients.stdin and clients.stdout
        took = float(clients.stdout.readline())
        grown = (resident_kib(pid) - before) / CROWD
        clients.stdin.close()
    return took, grown


def measure(name: str, command: list[str | Path]) -> dict[str, float]:
    samples: dict[str, float] = {}
    with server(command) as (port, pid):
        # A crowd of ours only: each connection takes torch's server about 0.1 s of waiting.
        if name == "ours":
            took, grown = crowd(port, pid)  # first, while its memory is as it was
            samples[f"{CROWD} connections [ms]"] = took
            samples["memory per connection [KiB]"] = grown
            samples[f"barrier of {CROWD} [ms]"] = load("barrier", port, CROWD)
        for kind in ("get", "add", "set"):
            samples[f"{kind} × {DEPTH} [1000/s]"] = (
                load(kind, port, CLIENTS, DEPTH, SECONDS) / 1_000
            )
        samples[ONE_AT_A_TIME] = load("add", port, CLIENTS, 1, SECONDS) / 1_000
    return samples


def measure_in_turn(rounds: int) -> tuple[Samples, dict[str, list[float]]]:
    """What was measured of each server, and what sockets alone allow."""
    samples: Samples = defaultdict(lambda: defaultdict(list))
    floor: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        harness.progress(f"round {turn + 1} of {rounds}")
        for name, command in SERVERS.items():
            for what, value in measure(name, command).items():
                samples[what][name].append(value)
        for what, depth in ((f"add × {DEPTH} [1000/s]", DEPTH), (ONE_AT_A_TIME, 1)):
            floor[what].append(load("floor", CLIENTS, depth, SECONDS) / 1_000)
    return samples, floor


def figure_of(what: str, found: dict[str, Summary], floor: dict[str, list[float]]) -> Figure:
    name, _, unit = what.rstrip("]").partition(" [")
    limit = ("sockets alone", Summary.of(floor[what]).median) if what in floor else ("", None)
    peer = ("torch's TCPStore, libuv", found.get("torch, libuv"))
    if not unit.endswith("/s"):
        return Figure(f"the workers' store: {name}", unit, found["ours"], *peer, *limit)
    name = name.replace(f"× {DEPTH}", f"with {DEPTH} requests at once")
    text = f"the workers' store: {CLIENTS} clients, {name}"
    return Figure(text, "k requests/s", found["ours"], *peer, *limit, more_is_better=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    samples, floor = measure_in_turn(parser.parse_args().rounds)
    rows, data, figures = [], {}, []
    for what, by_server in samples.items():
        found = {name: Summary.of(values) for name, values in by_server.items()}
        better = ratio(found.get("torch, libuv"), found["ours"])
        limit = str(Summary.of(floor[what])) if what in floor else "–"
        rows.append([what, *(str(found.get(name, "–")) for name in SERVERS), better, limit])
        data |= {f"{what}, {name}": one for name, one in found.items()}
        figures.append(figure_of(what, found, floor))
    harness.report(
        "store",
        f"The workers' store: {CLIENTS} clients that send {DEPTH} requests at once",
        ["", *SERVERS, "ours / libuv", "sockets alone"],
        rows,
        data,
        figures=figures,
    )


if __name__ == "__main__":
    main()
