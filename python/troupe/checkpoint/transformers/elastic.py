"""ms-swift with `--callbacks deepspeed_elastic`: the step that a run is resumed from, as DeepSpeed's universal checkpoint.

    output/v0-20261126-152945/
      dlrover_latest.txt, ucp.txt                    the last complete step, and the last that was converted
      checkpoint-6/global_step6/…, latest            as DeepSpeed saves it
      checkpoint-6/ucp/zero/…, latest_universal      the same for a world of any size

ms-swift has DeepSpeed load universal checkpoints alone then. A step without one is passed over, and where there is none at all
training begins anew, without a word, also after a restart in which the world has not changed. So before ms-swift loads anything all
ranks make one of the newest complete step together.
"""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..directories.steps import LAST_FILE
from ..library import CheckpointError
from ..ranks import COUNTS_OF_A_TERM, Agreement, Rank, number
from .versions import Resumable, earlier_runs, is_of_this_job, tracked_step

log = logging.getLogger("troupe.checkpoint")

CALLBACK = "deepspeed_elastic"
CONVERTED = "ucp.txt"  # a tracker: a step in decimal
UNIVERSAL, DIRECTORY = "latest_universal", "ucp"
UNFINISHED = ".troupe-universal"  # in a step's directory, while it is converted
DEVICE = "TROUPE_UCP_DEVICE_TYPE"
WITHIN = 1800.0  # seconds, for any rank's share


def is_wanted(args: Any) -> bool:
    """By the arguments of a run."""
    return bool(args.use_flash_ckpt) and CALLBACK in (getattr(args, "callbacks", None) or ())


def resumed_from(args: Any, rule: Callable[[], str | None]) -> str | None:
    """The directory of a step that has a universal checkpoint; None: there is no step, and training begins. `rule`: ms-swift's own
    answer, which is taken where the newest step cannot be converted. Collective.
    """
    otherwise = rule()  # also sees to it that the last run's steps are complete
    me = Rank.of_this_process()
    ranks = Agreement(me, WITHIN)
    try:
        chosen = ranks.said_by_first((_chosen(args) or "") if me.rank == 0 else "")
        if not chosen:
            return otherwise
        if not ranks.said_by_first("yes" if _is_converted(chosen) else ""):
            try:
                make_universal(ranks, chosen)
            except CheckpointError as error:
                if me.rank == 0:
                    log.error("%s; there is no universal checkpoint of it, and training goes on from %s", error, otherwise or "the beginning")
                return otherwise
        if me.rank == 0:
            _track(chosen)
        return chosen
    finally:
        ranks.close()


def make_universal(ranks: Agreement, step: str) -> None:
    """Of the step in this directory. Collective. Raises CheckpointError at all ranks, and leaves the step as it was."""
    from ..deepspeed.universal import convert

    began, first = time.monotonic(), ranks.me.rank == 0
    unfinished = os.path.join(step, UNFINISHED)
    made = os.path.join(unfinished, DIRECTORY)
    try:
        source = ranks.said_by_first(_source(step) if first else "")
        ranks.require("" if os.path.isdir(source) else f"{source} is not there: all nodes need one output directory")
        if first:
            shutil.rmtree(unfinished, ignore_errors=True)  # of a job that was killed here
        convert(ranks, source, made, step, os.environ.get(DEVICE, ""))
        ranks.together(lambda: _keep(_share(ranks.me, _files(made))))
        ranks.together(lambda: _publish(step, made) if first else None)
    finally:
        if first:
            shutil.rmtree(unfinished, ignore_errors=True)
    if first:
        log.info("%s is a universal checkpoint now, made by %d ranks in %.1f s", step, ranks.me.world_size, time.monotonic() - began)


# ---- which step ----


def _chosen(args: Any) -> str | None:
    """What the job is told to begin with, and, when its workers are started again, what they have saved since."""
    told = os.path.abspath(args.resume_from_checkpoint) if args.resume_from_checkpoint else None
    if told and not _shards(told):
        return None  # what DeepSpeed has not written, or only as a universal checkpoint
    if told and not _is_later_generation():
        return told
    return _newest(os.path.abspath(args.output_dir)) or told


def _newest(run: str) -> str | None:
    """Of the run before this one, which is where ms-swift looks: its last complete step. Of a run that has ended, none, as ms-swift has
    it; unless this job itself has ended it, when its workers were asked to end: then nothing is left to be done."""
    for before in earlier_runs(run)[:1]:
        step = tracked_step(before)
        if step is None or not _shards((found := Resumable(before, step)).path):
            return None
        with contextlib.suppress(OSError, ValueError), open(os.path.join(found.path, LAST_FILE), encoding="utf-8") as file:
            if json.load(file).get("max_steps") == step and not is_of_this_job(found):
                return None
        return found.path
    return None


def _is_later_generation() -> bool:
    """These workers are not the first of their job."""
    return number("TROUPE_GENERATION", 0) % COUNTS_OF_A_TERM > 1


def _is_converted(step: str) -> bool:
    with contextlib.suppress(OSError), open(os.path.join(step, UNIVERSAL), "rb") as file:
        return os.path.isdir(os.path.join(step, os.fsdecode(file.read(4096).strip())))
    return False


def _source(step: str) -> str:
    """Where the files of this step are that DeepSpeed has written."""
    named = ""
    with contextlib.suppress(OSError), open(os.path.join(step, "latest"), encoding="utf-8", errors="replace") as file:
        named = os.path.basename(file.read(4096).strip())
    return os.path.join(step, named) if named else _shards(step)[-1]


def _shards(step: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(step), "global_step*")))


# ---- what is made ----


def _files(directory: str) -> list[str]:
    return sorted(os.path.join(above, name) for above, _, names in os.walk(directory) for name in names)


def _share(me: Rank, files: list[str]) -> list[str]:
    return files[me.rank :: me.world_size]


def _keep(files: Iterable[str]) -> None:
    """On the disk, before anything says that it is there."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def _publish(step: str, made: str) -> None:
    final = os.path.join(step, DIRECTORY)
    shutil.rmtree(final, ignore_errors=True)
    os.rename(made, final)
    _write(os.path.join(step, UNIVERSAL), DIRECTORY)


def _track(step: str) -> None:
    run, name = os.path.split(step)
    digits = name.rpartition("-")[2]
    if digits.isdigit() and tracked_step(run, CONVERTED) != int(digits):
        try:
            _write(os.path.join(run, CONVERTED), digits)
        except OSError as error:
            log.warning("%s, which names the last universal checkpoint, cannot be written: %s", os.path.join(run, CONVERTED), error.strerror)


def _write(path: str, text: str) -> None:
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
