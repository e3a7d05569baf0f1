#!/usr/bin/env python3
"""From kill -9 of one of two ranks to the next optimizer step of both, and where that time goes.

Ours goes on from memory, torchrun from what torch.save wrote last, into /dev/shm and so without a disk's time.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from harness import Figure, Summary, ratio
from launchers import ROOT, Launcher, Run, until

# Every step is saved, and told only after that: a kill after the telling loses none.
TRAINS = """import time
started = time.monotonic_ns()
import json, os, sys
from pathlib import Path
import torch, torch.distributed as dist
if os.environ["OURS"] == "1":
    import troupe.checkpoint
imported = time.monotonic_ns()
place, mib = Path(sys.argv[1]), int(sys.argv[2])
rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
weights = [torch.nn.Parameter(torch.ones(mib * 262144 // 16)) for _ in range(16)]
for weight in weights:
    weight.grad = torch.ones_like(weight)
optimizer = torch.optim.SGD(weights, lr=0.5)
if os.environ["OURS"] == "1":
    checkpointer = troupe.checkpoint.DdpCheckpointer(place / "kept", local_shard_num=2, global_shard_num=2)
met = time.monotonic_ns()
file = place / f"rank_{rank}.pt"
if os.environ["OURS"] == "1":
    state = checkpointer.load_checkpoint()
else:
    state = torch.load(file, mmap=True) if file.exists() else {}
if state:
    with torch.no_grad():
        for weight, saved in zip(weights, state["weights"]):
            weight.copy_(saved)
step = state.get("step", 0)
loaded = time.monotonic_ns()
del state
def append(**what):
    with open(place / f"steps-{rank}", "a") as told:
        told.write(json.dumps({"life": life, "pid": os.getpid(), "step": step} | what) + "\\n")
while True:
    optimizer.step()
    dist.all_reduce(torch.ones(1))
    step += 1
    stepped = time.monotonic_ns()
    kept = {"step": step, "weights": [weight.detach() for weight in weights]}
    if os.environ["OURS"] == "1":
        assert checkpointer.save_checkpoint(step, kept, storage_type=troupe.checkpoint.StorageType.MEMORY)
    else:
        torch.save(kept, f"{file}.part")
        os.rename(f"{file}.part", file)
    append(started=started, imported=imported, met=met, loaded=loaded, stepped=stepped)
    time.sleep(0.05)
"""

PARTS = {  # from each moment to the next
    "detection and start: to the script's first line": "started",
    "imports": "imported",
    "ranks meet; parameters": "met",
    "restore": "loaded",
    "first step": "stepped",
}

PAGE = {
    "all": "kill -9 of one of two ranks with {mib} MiB each → the next step of both, imports of torch included",
    "restore": "restore of {mib} MiB for each of two ranks after that kill -9 (torchrun: torch.load from /dev/shm)",
}


def told(directory: Path, later_than: int) -> list[dict]:
    """What each rank told first in the first later life that came to a step; nothing if there is none yet."""
    lives: dict[int, dict[int, dict]] = defaultdict(dict)
    for rank in range(2):
        file = directory / f"steps-{rank}"
        for line in file.read_text().splitlines() if file.exists() else []:
            one = json.loads(line)
            lives[one["life"]].setdefault(rank, one)
    whole = [life for life, ranks in lives.items() if life > later_than and len(ranks) == 2]
    return [lives[min(whole)][rank] for rank in range(2)] if whole else []


def measure(launcher: Launcher, mib: int, rounds: int, figures: dict[str, list[float]]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        place = Path(directory)
        script = place / "train.py"
        script.write_text(TRAINS)
        ours = "0" if launcher.is_torchrun else "1"
        environment = {"PYTHONPATH": str(ROOT / "python"), "OURS": ours, "OMP_NUM_THREADS": "1"}
        # Else gloo finds addresses of the life before in the agent's store, and some lives hang.
        environment |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if launcher.is_torchrun else {}
        job = Run(
            launcher, [str(script), str(place), str(mib)], place, 1, 2, 20 * rounds, True,
            environment=environment,
        )  # fmt: skip
        with job as run:

            def next_life(life: int) -> list[dict]:
                if run.launchers[0].poll() is not None:
                    raise RuntimeError(f"{launcher.name} ended early:\n{run.err()}")
                return told(place, life)

            alive = until(lambda: next_life(-1), 120, "a first step")
            for _ in range(rounds):
                time.sleep(0.5)
                killed = time.monotonic_ns()
                os.kill(alive[1]["pid"], signal.SIGKILL)
                life, step = alive[0]["life"], min(one["step"] for one in alive)
                alive = until(lambda life=life: next_life(life), 120, f"a step after life {life}")
                assert min(one["step"] for one in alive) > step
                record(killed, alive, figures)


def record(killed: int, after: list[dict], figures: dict[str, list[float]]) -> None:
    """Each part of the slower rank."""
    slower = max(after, key=lambda one: one["stepped"])
    began = killed
    for name, moment in PARTS.items():
        figures[name].append((slower[moment] - began) / 1e6)
        began = slower[moment]
    figures["all"].append((slower["stepped"] - killed) / 1e6)


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: p.add_argument("--mib", type=int, default=1024, help="of each rank's state"),
    )
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for half in (chosen.rounds - chosen.rounds // 2, chosen.rounds // 2):
        for launcher in chosen.launchers:
            harness.progress(f"{launcher.name}, {half} kills")
            measure(launcher, chosen.mib, half, figures[launcher.name])
    ours, peer = harness.peer_of(chosen.launchers)
    rows, data, shown_on_page = [], {}, []
    for name in [*PARTS, "all"]:
        summaries = {who: Summary.of(parts[name]) for who, parts in figures.items() if parts[name]}
        shown = [str(summaries.get(one.name, "–")) for one in chosen.launchers]
        rows.append([name, *shown, ratio(summaries.get(ours), summaries.get(peer))])
        data[name] = {who: vars(summary) for who, summary in summaries.items()}
        if ours and name in ("all", "restore"):
            limits = ("importing torch", statistics.median(figures[ours]["imports"])) if name == "all" else ()
            text = PAGE[name].format(mib=chosen.mib)
            shown_on_page.insert(0, Figure(text, "ms", summaries[ours], peer or "", summaries.get(peer), *limits))
    floor = statistics.median(figures[ours]["imports"]) if ours else 0
    harness.report(
        "recover",
        f"kill -9 of one of two ranks with {chosen.mib} MiB each → the next step of both, ms: median (p10 – p90) of {chosen.rounds}",
        ["", *(one.name for one in chosen.launchers), "peer : ours"],
        rows,
        data,
        [f"limit: importing torch in two processes, {floor:.0f} ms here."],
        shown_on_page,
    )


if __name__ == "__main__":
    main()
