#!/usr/bin/env python3
"""What the launchers cost while the job runs undisturbed: memory, threads, idle processor time.

Two nodes with two workers each that only sleep. Node 0 of ours holds both trees, node 1 only the
node supervisor's; torchrun's node 0 holds the store. Where there is an `actor-master`, it is
measured alone as well.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import TAG, Launcher, Run, base_environment, children, free_port, until

IDLE_SECONDS = 20
SETTLE_SECONDS = 3  # longer than any handshake; what comes after it is the idle state
WORKER = "/bin/sleep"


@dataclass(frozen=True)
class Cost:
    pss_mib: float
    rss_mib: float
    threads: int
    idle_percent: float


def memory_mib(pid: int) -> tuple[float, float]:
    """PSS shares out what several processes map; RSS counts it in each."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, *_ = line.split()
        sizes[name] = int(size) / 1024
    return sizes["Pss:"], sizes["Rss:"]


def cpu_ns(pid: int) -> int:
    """Time on a processor, all threads: schedstat counts nanoseconds, stat ticks of 10 ms."""
    return sum(
        int((task / "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def costs(pids: dict[str, int]) -> dict[str, Cost]:
    """The processes are observed together over the same idle time."""
    time.sleep(SETTLE_SECONDS)
    began, before = time.monotonic(), {name: cpu_ns(pid) for name, pid in pids.items()}
    time.sleep(IDLE_SECONDS)
    elapsed = time.monotonic() - began
    result = {}
    for name, pid in pids.items():
        share = (cpu_ns(pid) - before[name]) / 1e9 / elapsed * 100
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        result[name] = Cost(*memory_mib(pid), threads, share)
    return result


def is_worker(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(WORKER)
    except OSError:
        return False


def has_workers(run: Run, per_node: int) -> bool:
    return all(sum(map(is_worker, children(p.pid))) == per_node for p in run.launchers)


def parts_of(run: Run) -> dict[str, int]:
    """torchrun is one process on each node; ours a keeper, its node supervisor, and on node 0 the store."""
    parts = {}
    for n, p in enumerate(run.launchers):
        parts[f"node {n}"] = run.supervisor(n)
        if parts[f"node {n}"] == p.pid:
            continue
        parts[f"node {n}, keeper"] = p.pid
        for name in ("store", "reaper"):
            if pid := run.part(f"troupe-{name}", n):
                parts[f"node {n}, {name}"] = pid
    return parts


def launcher_costs(launcher: Launcher) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory() as directory:
        job = Run(launcher, [WORKER, "600"], Path(directory), nodes=2, procs=2, python=False)
        with job as run:
            until(lambda: has_workers(run, 2), 60, f"workers of {launcher.name}")
            return costs(parts_of(run))


def master_cost(launcher: Launcher) -> Cost | None:
    """`actor-master` lies beside `actor-launcher`."""
    program = Path(launcher.program).with_name("actor-master")
    if launcher.is_torchrun or not program.exists():
        return None
    command = [program, "--listen", f"127.0.0.1:{free_port()}", "--nnodes", "2"]
    environment = base_environment() | {TAG: "footprint"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment) as process:
        try:
            return costs({"master": process.pid})["master"]
        finally:
            process.kill()


def figures_of(seen: dict[str, list[Cost]], ours: str | None, peer: str | None) -> list[Figure]:
    """All processes of a node's launcher together, since torchrun is one process and ours are several."""

    def together(launcher: str | None, node: str, field: str) -> Summary | None:
        parts = [costs for part, costs in seen.items() if part.startswith(f"{launcher}, {node}")]
        sums = [sum(getattr(cost, field) for cost in turn) for turn in zip(*parts)]
        return Summary.of(sums) if sums else None

    found = []
    for node, holds in (("node 0", ", with the job's master"), ("node 1", "")):
        for field, unit, what in (
            ("pss_mib", "MiB", "memory (PSS) of a node's launcher"),
            ("idle_percent", "% of a core", "processor time of a node's launcher while workers sleep"),
        ):
            if mine := together(ours, node, field):
                theirs = (peer or "", together(peer, node, field))
                found.append(Figure(what + holds, unit, mine, *theirs))
    return found


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], rounds=3)
    seen: dict[str, list[Cost]] = {}
    for turn in range(chosen.rounds):
        for launcher in chosen.launchers:
            harness.progress(f"round {turn + 1} of {chosen.rounds}: {launcher.name}")
            for part, cost in launcher_costs(launcher).items():
                seen.setdefault(f"{launcher.name}, {part}", []).append(cost)
            if master := master_cost(launcher):
                seen.setdefault(f"{launcher.name}, master alone", []).append(master)

    fields = ["pss_mib", "rss_mib", "threads", "idle_percent"]
    summaries = {
        name: {f: Summary.of([getattr(cost, f) for cost in samples]) for f in fields}
        for name, samples in seen.items()
    }
    rows = [[name, *(str(by_field[f]) for f in fields)] for name, by_field in summaries.items()]
    ours, peer = harness.peer_of(chosen.launchers)
    if ours and peer:
        for part in ("node 0", "node 1"):
            mine, theirs = summaries[f"{ours}, {part}"], summaries[f"{peer}, {part}"]
            rows.append([f"peer : ours, {part}", *(ratio(mine[f], theirs[f]) for f in fields)])
    data = {n: {f: vars(s) for f, s in by.items()} for n, by in summaries.items()}
    harness.report(
        "footprint",
        f"Cost of an undisturbed job, {IDLE_SECONDS} s idle: median (p10 – p90) of {chosen.rounds}",
        ["", "PSS MiB", "RSS MiB", "threads", "idle, % of a core"],
        rows,
        data,
        [
            "limit: a sleeping process costs no time; a C program with libc about 1 MiB. "
            "Goals: 20 MiB each, 0.1 % of a core."
        ],
        figures_of(seen, ours, peer),
    )


if __name__ == "__main__":
    main()
