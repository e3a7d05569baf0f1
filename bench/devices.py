#!/usr/bin/env python3
"""What a save of tensors on an accelerator costs: the program, the device, and until the image is whole.

In one process and in turn: the copy that the bus allows (as many bytes into pinned memory that was touched before), ours, the same where an
optimizer's tensors are waited for by its next step only, torch.save into /dev/shm, and torch.distributed.checkpoint.async_save, of
which only the call counts. Where PyTorch finds no such device it says so and measures nothing.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import harness
from launchers import ROOT
from snapshot import seconds, writers

sys.path.insert(0, str(ROOT / "python"))


class Bus:
    """The limit: one copy from the device, by its driver alone."""

    def __init__(self, size: int, device: str):
        import torch

        self.source = torch.ones(size, dtype=torch.uint8, device=device)
        self.target = torch.zeros(size, dtype=torch.uint8, pin_memory=True)

    def __call__(self) -> None:
        self.target.copy_(self.source, non_blocking=True)
        synchronize(self.source.device)


def synchronize(device) -> None:
    import torch

    getattr(torch, device.type).current_stream(device).synchronize()


def model_of(size: int, tensors: int, device: str):
    """Parameters of so many bytes together with what their optimizer keeps for each, twice as many."""
    import torch

    elements = size // 4 // 3 // tensors
    model = torch.nn.ParameterList(torch.rand(elements, device=device) for _ in range(tensors))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for parameter in model:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return model, optimizer


def ours(state: dict, arena, step: int, device, name: str, figures) -> None:
    """The call; until the device does what it was told after it; until the image is whole. Each includes the one before."""
    began = time.perf_counter()
    for what, until in (
        ("the call", lambda: arena.save(step, state)),
        ("the device waits", lambda: synchronize(device)),
        ("all copied", arena.wait),
    ):
        until()
        figures[f"{name}, {what}"].append(time.perf_counter() - began)


def measure(size: int, tensors: int, rounds: int, device: str) -> dict[str, list[float]]:
    import torch

    from troupe.checkpoint import Arena

    figures = defaultdict(list)
    model, optimizer = model_of(size, tensors, device)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    limit = Bus(size, device)
    where = torch.device(device)
    with (
        Arena() as arena,
        Arena(optimizers=[optimizer]) as overlapping,
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
    ):
        for opened in (arena, overlapping):
            opened.prepare(state)
            figures["memory made and pinned for two images"].append(
                seconds(opened.wait_until_prepared)
            )
        for turn in range(rounds):
            harness.progress(f"{size >> 20} MiB, round {turn + 1} of {rounds}")
            synchronize(where)
            figures["limit"].append(seconds(limit))
            ours(state, arena, turn + 1, where, "save", figures)
            ours(state, overlapping, turn + 1, where, "save with optimizers=", figures)
            writers(state, Path(place), figures)
    return figures


def is_there(device: str) -> bool:
    import torch

    module = getattr(torch, device.partition(":")[0], None)
    return module is not None and getattr(module, "is_available", lambda: False)()


def main() -> None:
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=4096, help="of the state; default 4096"),
            p.add_argument("--tensors", type=int, default=100, help="parameters; default 100"),
            p.add_argument("--device", default="cuda", help="default cuda"),
        ),
    )
    warnings.simplefilter("ignore")
    if not is_there(chosen.device):
        print(f"devices: not measured, since PyTorch finds no {chosen.device} device here")
        return
    figures = measure(chosen.mib << 20, chosen.tensors, chosen.rounds, chosen.device)
    harness.report_against_limit(
        "devices",
        f"{chosen.mib} MiB on {chosen.device}, ms: median (p10 – p90) of {chosen.rounds} in turn",
        figures,
        "a copy of as many bytes into pinned memory that was touched before.",
        [
            (f"save of {chosen.mib} MiB of a device: the call", "save, the call", "dcp.async_save, the call", False),
            (f"the same save of {chosen.mib} MiB, until all is copied", "save, all copied", "torch.save", True),
        ],
    )


if __name__ == "__main__":
    main()
