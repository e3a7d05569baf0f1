"""Lightning in a job that is killed: weights and files are those of a run that was not, and Lightning goes on from them without us."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Start
from killed_jobs import ENVIRONMENT, KILLS, SAY, WITHIN, kill_at_random_moments, of_dcp, same_weights
from launchers import ROOT, Run

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/conformance")]
from sharded import same

STEPS = 15 * max(2, KILLS // 5)
WHOLE_STATES, FSDP1, PARTS = "ddp", "fsdp", "model parallel"

TRAINS = (
    """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path

place, steps, how, options = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""
    + SAY
    + """
import lightning, torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import FSDPStrategy, ModelParallelStrategy
from tiny_lightning import Sharded, Tiny
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.utils.data import TensorDataset
from troupe.elastic import ElasticDataLoader, ElasticDistributedSampler

class OnCpu(FSDPStrategy):  # Lightning refuses its own class where there is no GPU, and PyTorch a device without a name
    def _setup_model(self, model):
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), **self.kwargs)

class Tells(Callback):
    def on_train_start(self, trainer, _):
        self.begun_with = trainer.global_step
    def on_train_batch_start(self, trainer, *_):
        say(trainer.global_step, self.begun_with)
        time.sleep(0.02 if options.get("ours") else 0)

lightning.seed_everything(0, verbose=False)
callbacks = [Tells()]
if options.get("ours"):
    from troupe.checkpoint.lightning import FlashCheckpoint
    callbacks.append(FlashCheckpoint(place / "c", memory_steps=1, disk_steps=5))
samples = TensorDataset(torch.randn(512, 4))
loader = ElasticDataLoader(samples, 4, sampler=ElasticDistributedSampler(samples, num_replicas=world, rank=rank))
strategy = {
    "ddp": lambda: "ddp",
    "fsdp": lambda: OnCpu(state_dict_type="sharded", auto_wrap_policy={torch.nn.Linear}),
    "model parallel": lambda: ModelParallelStrategy(data_parallel_size=world, tensor_parallel_size=1),
}[how]()
made = lightning.Trainer(
    max_steps=steps, accelerator="cpu", num_nodes=int(os.environ["GROUP_WORLD_SIZE"]), devices=int(os.environ["LOCAL_WORLD_SIZE"]),
    strategy=strategy, callbacks=callbacks,
    use_distributed_sampler=False, logger=False, enable_checkpointing=bool(options.get("ours")), enable_progress_bar=False,
    enable_model_summary=False,
)
model = (Sharded if how == "model parallel" else Tiny)()
made.fit(model, loader, ckpt_path=options.get("begins_with"))
if not options.get("ours"):
    made.save_checkpoint(place / f"step={steps}.ckpt")
weights = [getattr(one, "to_local", lambda one=one: one)().detach().clone() for one in model.parameters()]
torch.save({"weights": weights}, place / f"end-{rank}.pt")
torch.distributed.barrier()
os._exit(0)  # the group's threads may abort an interpreter that ends
"""
)


def trained(start: Start, place: Path, steps: int, how: str, options: dict[str, Any], **job: object) -> Run:
    place.mkdir(exist_ok=True)
    script = place / "train.py"
    script.write_text(TRAINS)
    return start([str(script), str(place), str(steps), how, json.dumps(options)], environment=ENVIRONMENT, **({"procs": 2} | job))


def state_in(path: Path) -> dict[str, Any]:
    """What Lightning goes on from, without what it says of callbacks."""
    parts: dict[str, Any] = {}
    if path.is_dir():
        parts, path = of_dcp(path), path / "meta.pt"
    state = torch.load(path, weights_only=False)
    return parts | {name: state[name] for name in state.keys() & {"state_dict", "optimizer_states", "lr_schedulers", "global_step", "hyper_parameters"}}


def check_same_end(ours: Path, theirs: Path, steps: int) -> None:
    assert same_weights(ours, theirs)
    a, b = (state_in(path / f"step={steps}.ckpt") for path in (ours / "c", theirs))
    assert same(a, b)


@pytest.mark.parametrize("how", [*(pytest.param(how, marks=pytest.mark.long) for how in (WHOLE_STATES, FSDP1)), PARTS])
def test_killed_at_random_moments_training_ends_with_the_same_bits(start: Start, tmp_path: Path, how: str) -> None:
    whole = trained(start, tmp_path / "whole", STEPS, how, {})
    assert whole.wait(WITHIN) == [0], whole.err()
    place = tmp_path / "ours"
    broken = trained(start, place, STEPS, how, {"ours": True}, restarts=KILLS)
    kill_at_random_moments(place, STEPS)
    assert broken.wait(WITHIN) == [0], broken.err()
    check_same_end(place, tmp_path / "whole", STEPS)
    assert (place / "c/dlrover_latest.txt").read_text() == str(STEPS)
    assert broken.leftovers() == []


@pytest.mark.long
@pytest.mark.parametrize("how", [FSDP1, PARTS])
@pytest.mark.parametrize("ranks", [1, 2])
def test_parts_go_on_in_another_world_as_by_lightnings_own_load(start: Start, tmp_path: Path, ranks: int, how: str) -> None:
    place, alone, later = tmp_path / "ours", tmp_path / "alone", STEPS + 5
    first = trained(start, place, STEPS, how, {"ours": True})
    assert first.wait(WITHIN) == [0], first.err()
    begins_with = {"begins_with": str(place / f"c/step={STEPS}.ckpt")}
    theirs = trained(start, alone, later, how, begins_with, procs=ranks)
    assert theirs.wait(WITHIN) == [0], theirs.err()
    ours = trained(start, place, later, how, {"ours": True}, procs=ranks)
    assert ours.wait(WITHIN) == [0], ours.err()
    assert same_weights(place, alone, ranks)
    assert state_in(place / f"c/step={later}.ckpt")["global_step"] == later
