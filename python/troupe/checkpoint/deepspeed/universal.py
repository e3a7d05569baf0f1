"""A step that a world of another size has saved: DeepSpeed's universal checkpoint is made of it, by all ranks together.

Without this a job that goes on with other nodes has to be stopped, converted by hand, and started again. DeepSpeed's own converter
(deepspeed/checkpoint/ds_to_universal.py) says what is to be done; each rank does its share of it. What it makes lies beside the
steps until it is loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from ..files import first_line
from ..library import CheckpointError
from ..loads import FoundFiles
from ..ranks import Agreement, summary

log = logging.getLogger("troupe.checkpoint")

OF_A_GROUP = {"params", "lr", "initial_lr"}  # the schedule sets the rates again
Work = tuple[Callable[[Any], Any], list[Any]]


@contextlib.contextmanager
def converted(ranks: Agreement, place: str, found: FoundFiles, tag: str) -> Iterator[str]:
    """The directory below which the step lies as a universal checkpoint of this tag. Collective, its end as well; all ranks see
    one `place`. Raises CheckpointError at all ranks, with the reason, for a step that DeepSpeed cannot convert.
    """
    try:
        yield made_universal(ranks, place, found, tag)
    finally:
        # Not before all have loaded; and one that has failed is not waited for.
        with contextlib.suppress(CheckpointError):
            _alone(ranks, lambda: shutil.rmtree(_directory(place, tag), ignore_errors=True))


def made_universal(ranks: Agreement, place: str, found: FoundFiles, tag: str) -> str:
    """The same; the caller removes it, when all ranks have loaded."""
    directory = _directory(place, tag)
    source = found.directory or os.path.join(directory, "shards")
    _alone(ranks, lambda: shutil.rmtree(directory, ignore_errors=True))  # of a job that was killed here
    ranks.together(lambda: _write(found, source))
    saved = f"step {found.step}, which {found.world_size} ranks have saved,"
    convert(ranks, source, os.path.join(directory, tag), saved)
    return directory


def _directory(place: str, tag: str) -> str:
    return os.path.join(place, f".universal-{tag}")


def convert(ranks: Agreement, source: str, output: str, what: str, device: str = "") -> None:
    """Files of a step, below `source`, become a universal checkpoint at `output`, and `latest_universal` beside it names that.
    Collective; all ranks see both. `what` is said of it; `device`: for the converter, empty: the CPU.

    Raises CheckpointError at all ranks, with the reason, for a step that DeepSpeed cannot convert.
    """
    if ranks.me.rank == 0:
        _lead(ranks, source, output, what, device)
    else:
        _follow(ranks)


def _alone(ranks: Agreement, what: Callable[[], None]) -> None:
    """Rank 0 does it, when all have come here, and no rank goes on before it is done."""
    ranks.gather([0])
    if ranks.me.rank == 0:
        what()
    ranks.gather([0])


def _write(found: FoundFiles, directory: str) -> None:
    """What this rank has of it in memory, of files of the world before."""
    for name, memory in found.files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(memory)


def _lead(ranks: Agreement, source: str, output: str, what: str, device: str) -> None:
    from deepspeed.checkpoint import ds_to_universal

    knows_devices = "--device" in inspect.getsource(ds_to_universal.parse_arguments)
    how = argparse.Namespace(
        input_folder=source,
        output_folder=output,
        num_extract_workers=1,
        num_merge_workers=1,
        keep_temp_folder=False,
        strict=True,
        inject_missing_state=True,  # what a model says of its own parallel parts; few say anything
    )

    def shared(do_work: Callable[[Any], Any], chunks: Iterable[Any], _workers: int) -> list[Any]:
        work = do_work, list(chunks)
        _say(ranks, work)
        return _done(ranks, work)

    if device:
        how.device = device
    alone, reason = ds_to_universal._do_parallel_work, ""
    ds_to_universal._do_parallel_work = shared
    try:
        if device and not knows_devices:
            raise CheckpointError(f"this DeepSpeed's converter knows no device: leave --ucp_device_type {device} out")
        with contextlib.redirect_stdout(io.StringIO()):
            ds_to_universal.main(how)
        _tell_of_zero3(os.path.join(output, "zero", "optimizer_state.pt"), what)
    except Exception as error:
        reason = _why(what, error)
    finally:
        ds_to_universal._do_parallel_work = alone
        _say(ranks, None)
    ranks.require(reason)


def _tell_of_zero3(file: str, what: str) -> None:
    """DeepSpeed's load of stage 3 gives all groups of parameters what the first one has, the very tensor that counts Adam's steps
    included, so that each of them counts it on. As its own save and load do, so does this; but not in silence."""
    state = torch.load(file, map_location="cpu", mmap=True, weights_only=False)
    if state.get("zero_stage", 0) < 3:
        return
    optimizer = state["optimizer_state_dict"]
    groups, states = optimizer["param_groups"], list(optimizer["state"].values())
    changes = []
    if len(states) > 1 and isinstance(states[0].get("step"), torch.Tensor):
        changes.append(f"each step counts as {len(states)} for Adam's correction of its averages")
    if differ := [name for name in groups[0] if name not in OF_A_GROUP and any(one.get(name) != groups[0][name] for one in groups)]:
        changes.append(f"all {len(groups)} groups of parameters have the {', '.join(differ)} of the first one")
    if changes:
        log.warning("%s is loaded by DeepSpeed's own rule for ZeRO 3, by which %s from now on", what, " and ".join(changes))


def _follow(ranks: Agreement) -> None:
    while (work := _say(ranks, None)) is not None:
        with contextlib.suppress(_Failed):  # rank 0 hears of it as well, and says it to all
            _done(ranks, work)
    ranks.require("")


class _Failed(CheckpointError):
    pass


def _say(ranks: Agreement, work: Work | None) -> Work | None:
    """What rank 0 says."""
    said = [work]
    if ranks.group is not None:
        dist.broadcast_object_list(said, src=0, group=ranks.group)
    return said[0]


def _done(ranks: Agreement, work: Work) -> list[Any]:
    """This rank does its share; what all have made. Raises _Failed at all ranks."""
    do_work, chunks = work
    results, reason = [], ""
    try:
        results = [do_work(chunk) for chunk in chunks[ranks.me.rank :: ranks.me.world_size]]
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
    if reasons := ranks.objections(reason):
        raise _Failed(summary(reasons))
    everyone = [results]
    if ranks.group is not None:
        everyone = [None] * ranks.me.world_size
        dist.all_gather_object(everyone, results, group=ranks.group)
    return [one for theirs in everyone for one in theirs]


def _why(what: str, error: Exception) -> str:
    why = first_line(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {first_line(error)}"
    return f"{what} cannot be converted for this world: {why}"
