"""Transformers' Trainer in a job that is killed: the loss curve, the weights and the files are those of a run that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
import torch
from conftest import Start
from killed_jobs import ENVIRONMENT, KILLS, SAY, WITHIN, has_come, kill_at_random_moments, of_dcp, same_weights, told
from launchers import ROOT, Run, until

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/conformance")]
from sharded import same

from troupe.checkpoint import complete_steps

STEPS = 15 * max(2, KILLS // 5)
# Of FSDP1 Trainer's own resumption on CPUs does not end with the same bits: conformance/test_fsdp_directories.py has it.
SHARDED, FULL = "2 SHARDED_STATE_DICT", "2 FULL_STATE_DICT"

TRAINS = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import torch
import fsdp_on_cpu
from tiny_trainer import losses, trainer
from transformers import TrainerCallback

place, is_ours, steps = Path(sys.argv[1]), sys.argv[2] == "ours", int(sys.argv[3])
fsdp, options = sys.argv[4].split(), json.loads(sys.argv[5])
rank = int(os.environ["RANK"])
""" + SAY + """
fsdp_on_cpu.allow()

class Tells(TrainerCallback):  # step and process, once they are in memory
    def on_train_begin(self, args, state, control, **_):
        self.begun_with = state.global_step
    def on_step_begin(self, args, state, control, **_):
        say(state.global_step, self.begun_with)

sharded = fsdp_on_cpu.sharded(int(fsdp[0]), fsdp[1]) if fsdp else {}
arguments = {"save_total_limit": 2} | options.pop("trainer", {})
made = trainer(place / "c", steps, callbacks=[Tells()], **arguments, **sharded)
assert made.is_fsdp_enabled == bool(fsdp)
if is_ours:
    from troupe.checkpoint.transformers import flash
    made = flash(made, memory_steps=1, **options)
    made.train(resume_from_checkpoint=True)
else:
    made.train(resume_from_checkpoint=options.get("resume"))
parts = [getattr(part, "to_local", lambda part=part: part)().detach().clone() for part in made.model.parameters()]
torch.save({"weights": parts, "losses": losses(made)}, place / f"end-{rank}.pt")
torch.distributed.destroy_process_group()
os._exit(0)  # the group's threads may abort an interpreter that ends
"""


def trained(start: Start, place: Path, name: str, fsdp: str, options: dict | None = None, steps: int = STEPS, **how: object) -> Run:
    place.mkdir(exist_ok=True)
    script = place / "train.py"
    script.write_text(TRAINS)
    words = [str(script), str(place), name, str(steps), fsdp, json.dumps(options or {})]
    return start(words, environment=ENVIRONMENT, **({"procs": 2} | how))


def same_end(one: Path, other: Path, ranks: int = 2) -> None:
    for rank in range(ranks):
        a, b = (torch.load(place / f"end-{rank}.pt") for place in (one, other))
        assert a["losses"] == b["losses"]
    assert same_weights(one, other, ranks)


def same_files(ours: Path, theirs: Path) -> None:
    names, those = ({str(p.relative_to(at)) for p in at.rglob("*") if p.is_file()} for at in (ours, theirs))
    assert {name for name in names if "troupe-" not in name} == those
    for name in those - {"training_args.bin", "trainer_state.json"}:  # paths, and what is told of time
        if name.endswith(".metadata"):
            a, b = (of_dcp((at / name).parent) for at in (ours, theirs))
            assert same(a, b)
        elif name.endswith((".safetensors", ".pth", "scheduler.pt", ".json")):
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
        elif not name.endswith(".distcp"):  # which `.metadata` tells of
            a, b = (torch.load(at / name, weights_only=False) for at in (ours, theirs))
            assert same(a, b)


@pytest.mark.parametrize("fsdp", ["", pytest.param(SHARDED, marks=pytest.mark.long)] if "KILLS" not in os.environ else ["", SHARDED, FULL])
def test_killed_at_random_moments_training_ends_with_the_same_bits(start: Start, tmp_path: Path, fsdp: str) -> None:
    whole = trained(start, tmp_path / "whole", "whole", fsdp)
    assert whole.wait(WITHIN) == [0], whole.err()

    place = tmp_path / "ours"
    broken = trained(start, place, "ours", fsdp, restarts=KILLS)
    kill_at_random_moments(place, STEPS)
    assert broken.wait(WITHIN) == [0], broken.err()

    same_end(place, tmp_path / "whole")
    for step in (STEPS - 5, STEPS):
        same_files(place / f"c/checkpoint-{step}", tmp_path / f"whole/c/checkpoint-{step}")
    assert complete_steps(str(place / "c")) == [STEPS, STEPS - 5]
    assert sorted(path.name for path in (place / "c").glob("checkpoint-*")) == [
        f"checkpoint-{STEPS - 5}",
        f"checkpoint-{STEPS}",
    ]
    assert broken.leftovers() == []
