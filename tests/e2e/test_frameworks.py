"""What frameworks keep in memory alone: written at a breakpoint as they write it, and taken from another node when one is lost."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from conftest import Start
from launchers import ROOT, Run, until

PACKAGE = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/conformance'}", "OMP_NUM_THREADS": "1"}
WITHIN = 180
KEPT, STEPS = 5, 7  # a job stands still when this step is in memory, and ends after that one
FRAMEWORKS = ["fsdp", "transformers", "lightning", "lightning parts"]


def but(often: str) -> list:
    """All of them, the others marked as long."""
    return [name if name == often else pytest.param(name, marks=pytest.mark.long) for name in FRAMEWORKS]


COMMON = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path

place, copies, kept, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rank, generation = int(os.environ["RANK"]), int(os.environ["TROUPE_GENERATION"]) % 4096  # its count

def say(name, step):
    part = place / f"{name}-{generation}-{rank}.part"
    part.write_text(json.dumps({"step": step, "pid": os.getpid()}))
    part.rename(part.with_suffix(".json"))

def stand_still():
    say("kept", kept)
    while not (place / "go-on").exists():
        time.sleep(0.02)
"""
LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import ModelParallelStrategy
from tiny_lightning import Sharded, Tiny, samples
from troupe.checkpoint.lightning import FlashCheckpoint

class Tells(Callback):
    def on_train_start(self, trainer, pl_module):
        self.begun = trainer.global_step
        say("begun", self.begun)
    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == kept > self.begun:
            assert not parts or not copies or flash._states.checkpointer.wait_latest_copies(60) == kept
            stand_still()

flash = FlashCheckpoint(place / "c", memory_steps=1, replica_count=copies)
made = lightning.Trainer(
    max_steps=steps, accelerator="cpu", strategy=ModelParallelStrategy(2, 1) if parts else "ddp", num_nodes=copies or 1, devices=2 // (copies or 1),
    callbacks=[Tells(), flash], logger=False,
    enable_progress_bar=False, enable_model_summary=False,
)
made.fit((Sharded if parts else Tiny)(), samples())
os._exit(0)
"""
TRAINS = {
    "fsdp": """
import torch.distributed as dist
from sharded import Trained
from troupe.checkpoint import StorageType
from troupe.checkpoint.fsdp import FsdpShardCheckpointer

dist.init_process_group("gloo")
trained = Trained("fsdp2")
with FsdpShardCheckpointer(place / "c", replica_count=copies) as checkpointer:
    begun = checkpointer.load_checkpoint(trained.model, trained.optimizer).get("step", 0)
    say("begun", begun)
    for step in range(begun + 1, steps + 1):
        trained.step(step)
        assert checkpointer.save_checkpoint(
            step, trained.model, trained.optimizer, {"step": step}, storage_type=StorageType.MEMORY
        )
        if step == kept:
            assert not copies or checkpointer.wait_latest_copies(60) == kept
            stand_still()
os._exit(0)
""",
    # Of two nodes each has a part with FSDP alone; with DDP each has all.
    "transformers": """
import fsdp_on_cpu
from tiny_trainer import trainer
from transformers import TrainerCallback
from troupe.checkpoint.transformers import flash

class Tells(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        say("begun", state.global_step)
        self.begun = state.global_step
    def on_step_begin(self, args, state, control, **_):
        if state.global_step == kept > self.begun:
            assert not copies or made._flash.checkpointer.wait_latest_copies(60) == kept
            stand_still()

fsdp_on_cpu.allow()
sharded = fsdp_on_cpu.sharded(2, "SHARDED_STATE_DICT") if copies else {}
made = trainer(place / "c", steps, callbacks=[Tells()], save_steps=1000, **sharded)
made = flash(made, memory_steps=1, replica_count=copies)
made.train(resume_from_checkpoint=True)
os._exit(0)
""",
    "lightning": "parts = False" + LIGHTNING,
    "lightning parts": "parts = True" + LIGHTNING,
}


def fsdp_reads(place: Path) -> int:
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    dcp_to_torch_save(place / str(KEPT), place / "one.pt")
    return torch.load(place / "one.pt", weights_only=True)["step"]


def transformers_reads(place: Path) -> int:
    from tiny_trainer import trainer

    directory = place / f"checkpoint-{KEPT}"
    made = trainer(place / "next", KEPT + 1, save_strategy="no")
    made.train(resume_from_checkpoint=str(directory))
    assert [row["step"] for row in made.state.log_history if "loss" in row] == [*range(1, KEPT + 2)]
    return json.loads((directory / "trainer_state.json").read_text())["global_step"]


def lightning_reads(place: Path) -> int:
    import lightning
    from tiny_lightning import Tiny, samples

    path = place / f"step={KEPT}.ckpt"
    made = lightning.Trainer(
        max_steps=KEPT + 1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    made.fit(Tiny(), samples(), ckpt_path=path)
    assert made.global_step == KEPT + 1
    return torch.load(path)["global_step"]


def parts_are_read(place: Path) -> int:
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    directory = place / f"step={KEPT}.ckpt"
    dcp_to_torch_save(directory, place / "one.pt")
    assert torch.load(place / "one.pt").keys() == {"state_dict", "optimizer_0"}
    return torch.load(directory / "meta.pt", weights_only=False)["global_step"]


READS = {"fsdp": fsdp_reads, "transformers": transformers_reads, "lightning": lightning_reads, "lightning parts": parts_are_read}


def job(start: Start, place: Path, framework: str, copies: int = 0, **how: object) -> Run:
    script = place / "train.py"
    script.write_text(COMMON + TRAINS[framework])
    return start([str(script), str(place), str(copies), str(KEPT), str(STEPS)], environment=PACKAGE, **how)


def said(place: Path, name: str, run: Run, generation: int) -> list[dict]:
    """By both ranks of a generation, or a later one."""

    def rows() -> list[dict] | None:
        found: dict[int, list[dict]] = {}
        for file in sorted(place.glob(f"{name}-*-*.json")):
            found.setdefault(int(file.name.split("-")[1]), []).append(json.loads(file.read_text()))
        return next((of for count, of in found.items() if count >= generation and len(of) == 2), None)

    try:
        return until(rows, WITHIN, f"{name} in generation {generation}")
    except BaseException:
        print(*(run.err(node) + run.out(node) for node in range(run.nodes)), sep="\n")
        raise


@pytest.mark.parametrize("framework", but("lightning"))
def test_the_last_step_in_memory_is_written_when_restarts_are_used_up_and_read_without_us(
    start: Start, tmp_path: Path, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = job(start, tmp_path, framework, procs=2, restarts=0)
    rows = said(tmp_path, "kept", run, 1)
    place = tmp_path / "c"
    assert not [path for path in place.iterdir() if not path.name.startswith(".")], "a step is on the disk already"
    os.kill(rows[1]["pid"], signal.SIGKILL)
    assert run.wait(WITHIN) != [0]
    assert (place / "dlrover_latest.txt").read_text() == str(KEPT), run.err()
    monkeypatch.syspath_prepend(str(ROOT / "tests/conformance"))
    assert READS[framework](place) == KEPT
    assert "troupe" not in sys.modules


@pytest.mark.parametrize("framework", but("fsdp"))
def test_a_job_that_loses_a_node_with_its_memory_goes_on_from_the_other_node(
    start: Start, tmp_path: Path, framework: str
) -> None:
    run = job(start, tmp_path, framework, copies=2, nodes=2, restarts=3)
    said(tmp_path, "kept", run, 1)
    os.kill(run.launchers[1].pid, signal.SIGKILL)
    run.launchers[1].wait()
    run.launchers[1] = run.start_node(1)
    run.launchers.pop()
    (tmp_path / "go-on").touch()
    assert [row["step"] for row in said(tmp_path, "begun", run, 2)] == [KEPT, KEPT]
    assert run.wait(WITHIN) == [0, 0], run.err()
