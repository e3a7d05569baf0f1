#!/usr/bin/env python3
"""What a save into memory costs for each tensor: a model of many parameters and its AdamW, whose state is asked for anew each time.

In one process and in turn, for small tensors, of which a save is next to nothing but their number: the pickle as torch.save makes it, as
ours is made of a state that was never seen, of one that has not changed, and of one whose step and learning rate have, all in the
thread's processor time; and the whole save. Then the same save with tensors of a usual size, beside two threads that memcpy as many bytes.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import sys
import time
from collections import defaultdict

import harness
from launchers import ROOT
from snapshot import THREADS, PlainCopy, seconds

sys.path.insert(0, str(ROOT / "python"))

COUNTS = (100, 1_000, 10_000)
SMALL = 16  # numbers of a tensor
OF_EACH = 4  # a parameter, its two averages, its step


class Training:
    """So many tensors, of so many bytes altogether."""

    def __init__(self, tensors: int, size: int):
        import torch

        elements = size // 4 * OF_EACH // (OF_EACH - 1) // tensors  # of the step there is one
        self.model = torch.nn.ParameterList(torch.rand(elements) for _ in range(tensors // OF_EACH))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        for parameter in self.model:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        for parameter in self.model:
            parameter.grad = None
        self.step = 0

    def state(self) -> dict:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }

    def goes_on(self) -> None:
        self.step += 1
        self.optimizer.param_groups[0]["lr"] *= 0.99


class AsTorchSaves(pickle.Pickler):
    """The pickler of torch/serialization.py: PyTorch's reductions, a persistent id for each storage."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=2)
        self.keys: dict[int, str] = {}

    def persistent_id(self, obj):
        import torch

        if not isinstance(obj, torch.storage.TypedStorage):
            return None
        storage = obj._untyped_storage
        key = self.keys.setdefault(storage._cdata, str(len(self.keys)))
        kind = getattr(torch, obj._pickle_storage_type())
        return "storage", kind, key, torch.serialization.location_tag(storage), obj._size()


def pickles(training: Training, skeletons, figures) -> None:
    """Each of a state of its own, since the second look at the same objects is faster than the first."""
    from troupe.checkpoint.skeleton import pickled

    def figure(name: str, make) -> None:
        state = training.state()
        began = time.thread_time()
        make(state)
        figures[name].append(time.thread_time() - began)

    figure("pickled as torch.save does", lambda state: AsTorchSaves(io.BytesIO()).dump(state))
    figure("pickled anew", pickled)
    figure("unchanged", skeletons.of)
    training.goes_on()
    figure("numbers changed", skeletons.of)


def small(tensors: int, rounds: int) -> dict[str, list[float]]:
    from troupe.checkpoint import Arena
    from troupe.checkpoint.kept_skeleton import Skeletons

    figures = defaultdict(list)
    training, skeletons = Training(tensors, 4 * SMALL * tensors), Skeletons()
    with Arena(threads=THREADS) as arena:
        arena.prepare(training.state())
        arena.wait_until_prepared()
        for turn in range(-2, rounds):  # the first two saves pickle
            found = defaultdict(list) if turn < 0 else figures
            pickles(training, skeletons, found)
            state = training.state()
            found["save, numbers changed"].append(seconds(lambda: arena.save(turn + 2, state)))
    return {f"{tensors:,} tensors: {name}": all for name, all in figures.items()}


def usual(tensors: int, size: int, rounds: int) -> dict[str, list[float]]:
    from troupe.checkpoint import Arena

    figures = defaultdict(list)
    training, limit = Training(tensors, size), PlainCopy(size)
    with Arena(threads=THREADS) as arena:
        arena.prepare(training.state())
        arena.wait_until_prepared()
        for turn in range(-2, rounds):
            training.goes_on()
            found = defaultdict(list) if turn < 0 else figures
            found["limit"].append(seconds(limit))
            state = training.state()
            found["save"].append(seconds(lambda: arena.save(turn + 2, state)))
    return dict(figures)


def options() -> argparse.Namespace:
    return harness.options(
        __doc__.splitlines()[0],
        15,
        lambda p: p.add_argument("--mib", type=int, default=1024, help="of the large state; default 1024"),
    )


def main() -> None:
    chosen = options()
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    found: dict[str, list[float]] = {}
    for tensors in COUNTS:
        harness.progress(f"{tensors:,} small tensors")
        found |= small(tensors, chosen.rounds)
    harness.progress(f"{COUNTS[-1]:,} tensors of {chosen.mib} MiB")
    large = f"{COUNTS[-1]:,} tensors of {chosen.mib} MiB"
    in_turn = usual(COUNTS[-1], chosen.mib << 20, chosen.rounds)
    found |= {f"{large}: save": in_turn["save"], f"{large}: memcpy by two threads": in_turn["limit"]}
    summaries = {name: harness.Summary.of([1e3 * one for one in all]) for name, all in found.items()}
    most = f"{COUNTS[-1]:,} tensors: "
    peer = "pickled as torch.save does"
    limit = summaries[f"{large}: memcpy by two threads"].median
    harness.report(
        "many_tensors",
        f"ms: median (p10 – p90) of {chosen.rounds} in turn",
        ["", "ms"],
        [[name, str(one)] for name, one in summaries.items()],
        dict(summaries),
        [f"save of {large}: {summaries[f'{large}: save'].median / limit:.2f} × memcpy"],
        [
            harness.Figure(
                f"pickle of {most}{name}", "ms", summaries[most + name], peer, summaries[most + peer]
            )
            for name in ("pickled anew", "unchanged", "numbers changed")
        ]
        + [
            harness.Figure(
                f"save of {large}", "ms", summaries[f"{large}: save"],
                limit_name="a plain copy", limit=limit,
            )
        ],  # fmt: skip
    )


if __name__ == "__main__":
    main()
