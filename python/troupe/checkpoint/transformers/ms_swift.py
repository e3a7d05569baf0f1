"""`swift sft --use_flash_ckpt true`, unchanged: what a run goes on from.

ms-swift saves through the classes of `peer`, and resumes from the disk by a rule of its own, which each rank asks for itself. Where a
launcher starts workers again that is not enough: the writers of the last processes may be at work still, so that one rank finds an
older step than another; a run that was cut off before its first save hides all runs before it; a path that the job began with is
gone back to at each restart. So before the rule is asked, what is in memory is written to its end, and what older runs have is carried
forward. Then rank 0's answer is the answer of all.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from ..directories.readable import require_whole
from ..directories.steps import LAST_FILE
from ..library import CheckpointError
from ..progress import since_failure, tell
from ..ranks import Rank
from . import elastic, peer
from .versions import Resumable, carry, earlier_runs, is_of_this_job, newest, steps_of

log = logging.getLogger("troupe.checkpoint")

PIPELINE, CLASS, METHOD = "swift.pipelines.train.sft", "SwiftSft", "_get_resume_checkpoint"
ENDED = "ended "  # before the path of a run's last step, where rank 0 says it
_MARK = "_troupe_rule"


def install() -> None:
    """Once in a process that has imported ms-swift, as it has when its pipeline imports DLRover's names; else nothing is done."""
    module = sys.modules.get(PIPELINE)
    if module is None:
        return
    pipeline = getattr(module, CLASS, None)
    rule = getattr(pipeline, METHOD, None)
    if rule is None:
        log.warning(
            "this ms-swift has no %s.%s: after a restart it resumes by its own rule, from the run just before alone", CLASS, METHOD
        )
    elif not hasattr(rule, _MARK):

        def resumed(self: Any, trainer: Any) -> str | None:
            def complete() -> str | None:
                return resumed_from(trainer, lambda: rule(self, trainer))

            args = trainer.args
            path = elastic.resumed_from(args, complete) if elastic.is_wanted(args) else complete()
            if path and args.use_flash_ckpt and Rank.of_this_process().rank == 0:
                later = f", {after}" if (after := since_failure()) else ""
                tell(f"training goes on from {os.path.realpath(path)}{later}")
            return path

        setattr(resumed, _MARK, rule)
        setattr(pipeline, METHOD, resumed)


def resumed_from(trainer: Any, rule: Callable[[], str | None]) -> str | None:
    """The directory that the run is resumed from; None: it begins. `rule`: ms-swift's answer. Collective.

    Raises CheckpointError at all ranks for a path that cannot be read, where there are only damaged steps, and for a directory in which
    a run has ended.
    """
    args = trainer.args
    if not args.use_flash_ckpt:
        return rule()
    engine = peer.SaveEngine.prepared(args.output_dir)
    kept = engine.finish_earlier()
    said, reason = "", ""
    if engine.me.rank == 0:
        try:
            path, ended = _chosen(args, kept, rule)
            said = f"{ENDED if ended else ''}{path or ''}"
        except (CheckpointError, OSError, ValueError) as error:
            reason = str(error)
    engine.require(reason)
    said = engine.said_by_first(said, _unseen)
    path = said.removeprefix(ENDED)
    if said.startswith(ENDED):
        trainer.train = functools.partial(_without_a_step, trainer, path)
    return path or None


def _without_a_step(trainer: Any, path: str, *_: Any, **__: Any) -> None:
    """In the place of `train` when the last step is made: Trainer would make one more."""
    trainer.state = type(trainer.state).load_from_json(os.path.join(path, LAST_FILE))
    trainer.state.last_model_checkpoint = path


def _chosen(args: Any, kept: int | None, rule: Callable[[], str | None]) -> tuple[str | None, bool]:
    """Also whether there is nothing left to do. `kept`: the newest step that this job's earlier processes have made, if memory knows of it."""
    run = os.path.abspath(args.output_dir)
    runs = [run, *earlier_runs(run)]
    if mine := _of_this_job(runs, kept):
        for one in [run] if mine.ended else runs[1:2]:
            carry(mine, one)
        return (rule() if elastic.is_wanted(args) and not mine.ended else mine.path), mine.ended
    if args.resume_from_checkpoint:
        require_whole(args.resume_from_checkpoint)
        return rule(), False
    found = newest(runs)
    if found is None:
        return rule(), False
    if found.run == run:  # --add_version false: ms-swift has no rule for that
        return _of_the_same_directory(found), False
    return (rule() if carry(found, runs[1]) else found.path), False


def _of_this_job(runs: list[str], kept: int | None) -> Resumable | None:
    """What processes that are started again go on from, whatever the job began with, and also if it was the last step. After another
    master has taken the job over, memory tells which that is."""

    def own(found: Resumable) -> bool:
        return found.step == kept or is_of_this_job(found)

    return next((found for run in runs for found in steps_of(run, own)), None)


def _of_the_same_directory(found: Resumable) -> str:
    if found.ended:
        raise CheckpointError(
            f"output_dir: in {found.run} a run has ended with {os.path.basename(found.path)}, and another one would save its steps over "
            "those: give another --output_dir, remove that one, or leave --add_version false out"
        )
    return found.path


def _unseen(said: str) -> str:
    path = said.removeprefix(ENDED)
    return "" if os.path.isdir(path) else f"{path} is not there: all nodes need one output directory"
