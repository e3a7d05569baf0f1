#!/usr/bin/env python3
"""What it costs a training process that its progress is seen: hooks, counters, collectives.

One rank of DDP with a data loader. A step of 10 ms varies by more than the hooks cost, so there are three figures: pairs of runs
of such steps, one with hooks and one without, which say how large the noise is; pairs of runs of the shortest step that passes
by all hooks, in which the same cost stands out; and such steps of one process that takes the hooks of steps and phases off and on
again every twenty steps, which leaves the least noise. Collectives are counted in all of the last.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import harness
from harness import Figure, Summary
from launchers import PYTHON, ROOT, free_port

LIBEXEC = ROOT / "build/release/libexec/troupe"
PAGE_BYTES = 32768
STEP_NS = 10_000_000
IN_ONE = "shortest, in one process"
STEPS = {"10 ms": 300, "shortest": 4000, IN_ONE: 12000}

# Prints what a step takes in nanoseconds, of the tenth that was disturbed least: other processes would be most of a median. The work
# beside the hooks is told as a number of products of matrices.
WORKER = """
import statistics, sys, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
products, steps = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
a = torch.randn(128, 128)
took = []
for batch in torch.utils.data.DataLoader(torch.randn(steps, 8)):
    began = time.perf_counter_ns()
    for _ in range(products):
        torch.mm(a, a)
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    took.append(time.perf_counter_ns() - began)
    if len(took) > 1:
        took[-2] = took[-2] + (began - ended)
    ended = time.perf_counter_ns()
took = took[len(took) // 10 : -1]
print(statistics.quantiles(took, n=10)[0])
dist.destroy_process_group()
"""

# As above, in turn without and with the hooks of steps and phases; prints both times. The hooks begin when the words that they exchange
# are known, so that these can be changed back.
IN_TURN = """
import collections, ctypes, statistics, sys, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, dataloader

def word(address):
    return ctypes.c_void_p.from_address(address)

HEADER = object.__basicsize__
BEHIND = {"builtin_function_or_method": HEADER, "method_descriptor": HEADER + 24}
called = [type(torch.autograd.Variable._execution_engine).run_backward, collections.OrderedDict.values, torch._C._set_grad_enabled]
words = [word(word(id(each) + BEHIND[type(each).__name__]).value + 8) for each in called]
words.append(word(id(dataloader._SingleProcessDataLoaderIter) + HEADER + 8 + 25 * 8))
without = [each.value for each in words]
sys.path.insert(0, sys.argv[3])
import _troupe_hooks
from _troupe_hooks import native
ctypes.PyDLL(native.LOOKS_ON).troupe_python_begin(ctypes.c_size_t(HEADER), sys.version_info[1])
_troupe_hooks.begin(torch, lambda *_: None, sys.argv[3])
hooked = [each.value for each in words]
assert all(a != b for a, b in zip(without, hooked)), "a word is not exchanged"
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def put(on):
    for each, value in zip(words, hooked if on else without):
        each.value = value

took, on, made = {False: [], True: []}, True, 0
began = time.perf_counter_ns()
for batch in DataLoader(torch.randn(int(sys.argv[2]), 8)):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    took[on].append(time.perf_counter_ns() - began)
    made += 1
    if made % 20 == 0:
        on = not on
        put(on)
    began = time.perf_counter_ns()
print(*(statistics.quantiles(took[on][100:], n=10)[0] for on in (False, True)))
dist.destroy_process_group()
"""


def run(script: str, hooks: bool, products: int, steps: int) -> list[float]:
    page = os.memfd_create("troupe-progress")
    try:
        os.ftruncate(page, PAGE_BYTES)
        environment = {
            **os.environ,
            "RANK": "0",
            "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "TROUPE_PROGRESS_FD": str(page),
            "TROUPE_HOOKS": "1",
        }
        if hooks:
            environment["PYTHONPATH"] = str(LIBEXEC / "hooks")
        said = subprocess.run(
            [PYTHON, "-c", script, str(products), str(steps), str(LIBEXEC / "hooks")],
            env=environment,
            pass_fds=[page],
            capture_output=True,
            text=True,
            check=True,
        )
        if hooks and not Path(f"/proc/self/fd/{page}").read_bytes()[:8].strip(b"\0"):
            sys.exit("the hooks have not taken the page")
        return [float(word) for word in said.stdout.split()]
    finally:
        os.close(page)


def step_ns(hooks: bool, products: int, steps: int) -> float:
    return run(WORKER, hooks, products, steps)[0]


def products_for(duration_ns: int) -> int:
    """How many products make a step that long on this machine."""
    idle, busy = step_ns(False, 0, 500), step_ns(False, 100, 200)
    return max(1, round((duration_ns - idle) / ((busy - idle) / 100)))


def pair(products: int | None, steps: int, turn: int) -> tuple[float, float]:
    """Without and with hooks, in turn the one and the other first; or in one process."""
    if products is None:
        without, hooked = run(IN_TURN, False, 0, steps)
        return without, hooked
    order = [False, True] if turn % 2 == 0 else [True, False]
    found = {hooks: step_ns(hooks, products, steps) for hooks in order}
    return found[False], found[True]


def main() -> None:
    chosen = harness.options(__doc__.splitlines()[0], rounds=10)
    work: dict[str, int | None] = {"10 ms": products_for(STEP_NS), "shortest": 0, IN_ONE: None}
    steps: dict[str, list[float]] = {}
    added: dict[str, list[float]] = {}
    for turn in range(chosen.rounds):
        for kind, products in work.items():
            harness.progress(f"round {turn + 1} of {chosen.rounds}: {kind}")
            without, hooked = pair(products, STEPS[kind], turn)
            steps.setdefault(kind, []).append(without / 1e3)
            added.setdefault(kind, []).append((hooked - without) / 1e3)
    rows, results = [], {}
    for kind in work:
        plain, more = Summary.of(steps[kind]), Summary.of(added[kind])
        share = Summary.of([each * 1e3 / STEP_NS * 100 for each in added[kind]])
        rows.append([kind, str(plain), str(more), str(share)])
        results |= {f"{kind}: step": plain, f"{kind}: added": more}
    share = Summary.of([each * 1e3 / STEP_NS * 100 for each in added[IN_ONE]])
    harness.report(
        "hooks",
        f"A step without hooks, and what they add: median (p10 – p90) of {chosen.rounds} pairs of runs",
        ["", "step, us", "added, us", "added, % of 10 ms"],
        rows,
        results,
        ["goal: 0.1 % of a step of 10 ms. What the 10 ms steps vary by without any change is the noise of their row."],
        [Figure("what progress that is seen adds to a step of 10 ms", "%", share, limit_name="goal", limit=0.1)],
    )


if __name__ == "__main__":
    main()
