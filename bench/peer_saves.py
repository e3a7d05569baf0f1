#!/usr/bin/env python3
"""What a save into memory costs training with FSDP and with DeepSpeed, next to DLRover's checkpointers of the same names.

Two ranks under actor-launcher, and in each process both makers' checkpointers, which save in turn: whole calls of
`save_checkpoint`, and for FSDP also of a state that is made already, since PyTorch gathers sizes and names when it makes one.
What the slower rank needs counts. With DeepSpeed each maker has an engine of its own, since both change it. DLRover 0.6.1
goes with DeepSpeed 0.16.5, not with later ones: it takes the place of torch.save with a function that lacks an argument.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import harness
from framework_saves import deepspeed_engine, runs_with
from harness import Figure, Summary, ratio
from launchers import ROOT, Run, actor_launcher
from snapshot import THREADS, PlainCopy, seconds

OWN = ROOT / "build/dlrover-venv/bin/python"
INSTALL = (
    "an environment with PyTorch, and in it `pip install dlrover==0.6.1 psutil pynvml deprecated grpcio protobuf`, and "
    "`DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed==0.16.5` for DeepSpeed"
)
RANKS = 2
WARM = 2  # saves; each of two images has its memory then
OURS, THEIRS = "save", "DLRover's save"
MAKING, OURS_MADE, THEIRS_MADE = "making the state", "save of a made state", "DLRover's save of a made state"
KINDS = {"fsdp": "FsdpShardCheckpointer", "deepspeed": "DeepSpeedCheckpointer"}
PAIRS = ((OURS, THEIRS), (OURS_MADE, THEIRS_MADE))
BYTES_OF_A_PARAMETER = 12  # itself, and two moments of AdamW

Saves = dict[str, Callable[[int], object]]  # what is timed, of a step


def fsdp_model(size: int, tensors: int):
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    side = int((size / BYTES_OF_A_PARAMETER / tensors) ** 0.5) // RANKS * RANKS
    layers = [torch.nn.Linear(side, side, bias=False) for _ in range(tensors)]
    model = FSDP(
        torch.nn.Sequential(*layers),
        auto_wrap_policy=ModuleWrapPolicy([torch.nn.Linear]),
        device_id=torch.device("cpu"),
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    model(torch.randn(1, side)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return model, optimizer, tensors * side * side * BYTES_OF_A_PARAMETER // RANKS


def fsdp(size: int, tensors: int, place: Path) -> tuple[int, Saves]:
    """Bytes of this rank's state, and what is timed."""
    from dlrover.trainer.torch.flash_checkpoint import fsdp as theirs
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp import StateDictType
    from troupe.checkpoint import StorageType
    from troupe.checkpoint.fsdp import FsdpShardCheckpointer

    model, optimizer, mine = fsdp_model(size, tensors)
    ours, dlrovers = FsdpShardCheckpointer(place / "ours"), theirs.FsdpShardCheckpointer(str(place / "theirs"))

    state: dict = {}

    def make(step: int) -> None:
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            state.update(model=model.state_dict(), optim=FSDP.optim_state_dict(model, optimizer), step=step)

    def save(step: int) -> None:
        assert ours.save_checkpoint(step, model, optimizer, {"step": step}, storage_type=StorageType.MEMORY)

    def save_made(step: int) -> None:
        assert ours.save_checkpoint(step, state, storage_type=StorageType.MEMORY)

    def save_theirs(step: int) -> None:
        memory = theirs.StorageType.MEMORY
        dlrovers.save_checkpoint(step, model, optimizer, {"step": step}, storage_type=memory)
        assert dlrovers._engine._cached_step == step  # it skips saves without a word

    def save_theirs_made(step: int) -> None:  # the last line of its save_checkpoint
        path = str(place / "theirs" / str(step))
        assert dlrovers._engine.save_to_memory(step, state, {"model_states": path})

    timed = {MAKING: make, OURS: save, THEIRS: save_theirs, OURS_MADE: save_made, THEIRS_MADE: save_theirs_made}
    return mine, timed


def deepspeed(size: int, tensors: int, place: Path) -> tuple[int, Saves]:
    from dlrover.trainer.torch.flash_checkpoint import deepspeed as theirs
    from troupe.checkpoint import StorageType
    from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer

    engines = [deepspeed_engine(size, tensors, RANKS) for _ in range(2)]
    engines[0].save_checkpoint(str(place / "plain"), "1")
    # The weights are rank 0's, a partition of the rest each rank's.
    rank = os.environ["RANK"]
    mine = [path for path in (place / "plain/1").iterdir() if path.name.startswith(f"zero_pp_rank_{rank}_")]
    mine += (place / "plain/1").glob("mp_rank_*") if rank == "0" else []
    where = [str(place / who) for who in ("ours", "theirs")]
    ours = DeepSpeedCheckpointer(engines[0], where[0])
    dlrovers = theirs.DeepSpeedCheckpointer(engines[1], where[1])

    def save(step: int) -> None:
        assert ours.save_checkpoint(where[0], step, storage_type=StorageType.MEMORY)

    def save_theirs(step: int) -> None:
        dlrovers.save_checkpoint(where[1], step, storage_type=theirs.StorageType.MEMORY)
        assert dlrovers._async_save_engine._cached_step == step

    return sum(path.stat().st_size for path in mine), {OURS: save, THEIRS: save_theirs}


def rank_of_job(kind: str, place: Path, size: int, tensors: int, rounds: int) -> None:
    """One of the job's processes. Rank 0 writes the figures, in seconds, to `<place>/figures.json`."""
    import torch
    import torch.distributed as dist
    from dlrover.trainer.torch.flash_checkpoint.engine import CheckpointEngine, start_saver_process

    warnings.simplefilter("ignore")
    # DLRover forks it where its first checkpointer is made, and there a fork of so many threads may wait for ever.
    CheckpointEngine.saver_proc = start_saver_process()
    dist.init_process_group("gloo")
    mine, saves = {"fsdp": fsdp, "deepspeed": deepspeed}[kind](size, tensors, place)
    whole = torch.tensor([mine])
    dist.all_reduce(whole)
    limit = PlainCopy(mine)
    figures: dict[str, list[float]] = {name: [] for name in ("limit", *saves)}
    step = 0
    for turn in range(1, WARM + rounds + 1):
        others = [name for name in saves if name != MAKING]
        order = ["limit", *(name for name in saves if name == MAKING), *(others if turn % 2 else reversed(others))]
        for name in order:
            step += 1
            dist.barrier()
            took = seconds(limit if name == "limit" else lambda n=name, s=step: saves[n](s))
            slowest = torch.tensor([took], dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            if turn > WARM:
                figures[name].append(slowest.item())
        if dist.get_rank() == 0:
            harness.progress(f"{kind}: {int(whole) >> 20} MiB, round {turn} of {WARM + rounds}")
    if dist.get_rank() == 0:
        (place / "figures.json").write_text(json.dumps({"bytes": int(whole), "seconds": figures}))
    for shared in Path("/dev/shm").glob(f"{os.environ['TORCHELASTIC_RUN_ID']}_ckpt_shm_{os.environ['RANK']}"):
        shared.unlink()  # which DLRover leaves
    dist.barrier()
    os._exit(0)  # DLRover's threads and process would wait for each other


def measured(kind: str, chosen) -> tuple[int, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        worker = [__file__, "--rank-of-job", kind, place, str(chosen.mib << 20), str(chosen.tensors), str(chosen.rounds)]
        environment = {
            "PYTHON_EXEC": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "bench")]),
            "OMP_NUM_THREADS": "1",
            "DS_ACCELERATOR": "cpu",
        }
        with Run(actor_launcher(), worker, Path(place), procs=RANKS, environment=environment) as run:
            if run.wait(600 + 60 * chosen.rounds) != [0]:
                raise SystemExit(f"peer_saves: {kind}: the job has failed:\n{run.err()[-3000:]}")
        found = json.loads((Path(place) / "figures.json").read_text())
    return found["bytes"], found["seconds"]


def main() -> None:
    if sys.argv[1:2] == ["--rank-of-job"]:
        kind, place, *numbers = sys.argv[2:]
        rank_of_job(kind, Path(place), *map(int, numbers))
    chosen = harness.options(
        __doc__.splitlines()[0],
        10,
        lambda p: (
            p.add_argument("--mib", type=int, default=1024, help="of the state; default 1024"),
            p.add_argument("--tensors", type=int, default=16, help="parameters; default 16"),
        ),
    )
    if not runs_with("dlrover", OWN, f"{OWN.parents[1]} is to be {INSTALL}"):
        return
    kinds = [kind for kind in KINDS if kind == "fsdp" or importlib.util.find_spec(kind)]
    rows, data, figures = [], {}, []
    for kind in kinds:
        size, found = measured(kind, chosen)
        name = f"{KINDS[kind]}, {size >> 20} MiB of {RANKS} ranks"
        summaries = {what: Summary.of([1e3 * s for s in each]) for what, each in found.items()}
        limit = summaries["limit"]
        for what, one in summaries.items():
            per_gib = one.median * (1 << 30) / size
            rows.append([f"{name}: {what}", str(one), harness.short(per_gib), ratio(limit, one)])
        data |= {f"{kind}, {what}": one for what, one in summaries.items()}
        for ours, theirs in PAIRS:
            if ours in found:
                each = Summary.of([b / a for a, b in zip(found[ours], found[theirs], strict=True)])
                rows.append([f"{name}: {theirs} by ours, round by round", f"{each} ×", "", ""])
                data[f"{kind}, {theirs} by ours"] = each
                of_page = summaries[ours], "DLRover 0.6.1", summaries[theirs], "a plain copy", limit.median
                figures.append(Figure(f"{ours} into memory, {name}", "ms", *of_page))
    harness.report(
        "peer_saves",
        f"a save of {chosen.mib} MiB in {chosen.tensors} parameters: median (p10 – p90) of {chosen.rounds} in turn",
        ["", "ms", "ms per GiB", "× limit"],
        rows,
        data,
        [f"limit: memcpy of each rank's bytes by {THREADS} threads at both ranks at once, into memory that was touched before."],
        figures,
    )


if __name__ == "__main__":
    main()
