"""Transformers' Trainer: what is kept is what it would have written, and is read without us."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
import safetensors.torch
import torch
from few_ranks import Job, context
from tiny_trainer import losses, trainer, weights
from transformers import GPT2LMHeadModel, TrainerCallback

from troupe.checkpoint import CheckpointError, File, Part, StorageType, complete_steps
from troupe.checkpoint.transformers import DirectoryCheckpointer, FlashCkptTrainer, flash
from troupe.checkpoint.directories.capture import SMALL, Capture
from troupe.checkpoint.directories.readable import require_readable
from troupe.checkpoint.directories.safetensors import part_of
from troupe.checkpoint.directories.steps import too_many

context.set_forkserver_preload(["torch", "torch.distributed", "troupe.checkpoint.transformers"])

NATIVE = (torch.save, safetensors.torch.save_file)
WEIGHTS, OPTIMIZER = "model.safetensors", "optimizer.pt"


# ---- Files of safetensors ----


def content(part: Part) -> bytes:
    whole = [torch.tensor([], dtype=torch.uint8).set_(one) for one in part.storages]
    return part.head + b"".join(tensor.numpy().tobytes() for tensor in whole)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_part_is_what_the_library_writes(metadata: dict[str, str] | None):
    big = torch.randn(100)
    tensors = {
        "z": torch.randn(3, 5),
        'ä"\n': torch.arange(7),
        "flags": torch.ones(3, dtype=torch.bool),
        "half": torch.randn(5).half(),
        "brain": torch.randn(5).bfloat16(),
        "none": torch.zeros(0, 3),
        "scalar": torch.tensor(3.0),
        "slice": big[10:20],
        "next": big[20:30],
        "small": torch.randn(4).to(torch.float8_e4m3fn),
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
    }
    assert content(part_of(tensors, metadata)) == safetensors.torch.save(tensors, metadata)


def test_what_the_library_refuses_is_left_to_it():
    whole = torch.randn(10, 10)
    for tensors in ({"a": whole, "b": whole[2:]}, {"a": whole.t()}, {"a": whole.to_sparse()}, {"a": 1}):
        assert part_of(tensors, None) is None


# ---- What a framework writes ----


def test_large_tensors_are_noted_wherever_their_file_goes_and_nothing_stays_replaced(tmp_path: Path):
    capture, large = Capture(), torch.zeros(SMALL)
    below = capture.root / "step"
    elsewhere = tmp_path / "other.pt"
    with pytest.raises(KeyError), capture.noting():
        assert torch.save is not NATIVE[0] and safetensors.torch.save_file is not NATIVE[1]
        (below / "deep").mkdir(parents=True)
        torch.save(large, below / "first.pt")
        (below / "first.pt").rename(below / "deep/moved.pt")
        safetensors.torch.save_file({"w": large}, str(below / "w.safetensors"))
        torch.save({"small": 1}, below / "small.pt")
        torch.save(large, elsewhere)
        other = threading.Thread(target=torch.save, args=(large, below / "by_a_thread.pt"))
        other.start()
        other.join()
        with open(below / "opened.pt", "wb") as file:
            torch.save(large, file)
        raise KeyError
    assert (torch.save, safetensors.torch.save_file) == NATIVE
    files = {file.name: file for file in capture.files("step")}
    noted = [name for name, file in files.items() if file.parts[0].storages]
    assert noted == ["deep/moved.pt", "w.safetensors"]
    for name in ("by_a_thread.pt", "opened.pt"):
        assert torch.equal(torch.load(io.BytesIO(files[name].parts[0].head)), large)
    assert torch.equal(torch.load(elsewhere), large)
    capture.close()
    assert not capture.root.exists()


# ---- Trainer ----


def check_same(own: Path, ours: Path) -> None:
    names = {path.name for path in own.iterdir()}
    assert {path.name for path in ours.iterdir() if not path.name.startswith((".", "troupe-"))} == names
    for name in names - {OPTIMIZER, "training_args.bin"}:
        theirs = (own / name).read_bytes().replace(str(own.parent).encode(), b"PLACE")
        assert (ours / name).read_bytes().replace(str(ours.parent).encode(), b"PLACE") == theirs, name
    a, b = torch.load(own / OPTIMIZER), torch.load(ours / OPTIMIZER)
    assert a["param_groups"] == b["param_groups"]
    for which, state in a["state"].items():
        assert all(torch.equal(tensor, b["state"][which][name]) for name, tensor in state.items())
    arguments = [torch.load(at / "training_args.bin", weights_only=False) for at in (own, ours)]
    assert arguments[0].to_dict() | {"output_dir": ""} == arguments[1].to_dict() | {"output_dir": ""}


def test_files_are_those_of_trainer_and_are_read_without_us(tmp_path: Path):
    own = trainer(tmp_path / "own", 10)
    own.train()
    ours = flash(trainer(tmp_path / "ours", 10))
    ours.train(resume_from_checkpoint=True)
    assert (torch.save, safetensors.torch.save_file) == NATIVE
    assert losses(own) == losses(ours)
    for step in (5, 10):
        check_same(tmp_path / f"own/checkpoint-{step}", tmp_path / f"ours/checkpoint-{step}")
    assert complete_steps(str(tmp_path / "ours")) == [10, 5]
    read = GPT2LMHeadModel.from_pretrained(tmp_path / "ours/checkpoint-10")
    assert all(torch.equal(t, weights(ours)[n]) for n, t in read.state_dict().items())
    resumed = trainer(tmp_path / "ours", 20)
    resumed.train(resume_from_checkpoint=True)  # Trainer's own way
    resumed_own = trainer(tmp_path / "own", 20)
    resumed_own.train(resume_from_checkpoint=True)
    assert losses(resumed) == losses(resumed_own)
    assert all(torch.equal(t, weights(resumed)[n]) for n, t in weights(resumed_own).items())


def test_the_newest_complete_step_is_resumed_from_to_the_same_end(tmp_path: Path):
    whole = trainer(tmp_path / "whole", 12)
    whole.train()

    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_training_stop = state.global_step == 7

    first = flash(trainer(tmp_path / "ours", 12, callbacks=[Stop()]))
    first.train(resume_from_checkpoint=True)
    second = flash(trainer(tmp_path / "ours", 12))
    second.train(resume_from_checkpoint=True)
    assert losses(second) == losses(whole)
    assert all(torch.equal(t, weights(whole)[n]) for n, t in weights(second).items())


def test_steps_in_memory_alone_are_no_directories(tmp_path: Path):
    made = flash(trainer(tmp_path / "c", 9), memory_steps=2)
    made.train()
    assert complete_steps(str(tmp_path / "c")) == [9, 5]
    assert made._flash.checkpointer.load_directory()[0] == 9


class Metric(TrainerCallback):
    """The best step is the first that is evaluated."""

    def on_evaluate(self, args, state, control, metrics, **_):
        metrics["eval_made"] = -float(state.global_step)


@pytest.mark.parametrize("limit", [1, 2])
def test_the_limit_counts_complete_steps_and_the_best_one_stays(tmp_path: Path, limit: int):
    more = {
        "eval_strategy": "steps",
        "eval_steps": 5,
        "load_best_model_at_end": True,
        "metric_for_best_model": "made",
        "greater_is_better": True,
        "save_total_limit": limit,
        "callbacks": [Metric()],
    }
    own = trainer(tmp_path / "own", 20, **more)
    own.train()
    ours = flash(trainer(tmp_path / "ours", 20, **more))
    ours.train()
    left = {at: {path.name for path in (tmp_path / at).glob("checkpoint-*")} for at in ("own", "ours")}
    assert left["ours"] == left["own"]
    assert ours.state.best_model_checkpoint == str(tmp_path / "ours/checkpoint-5")
    assert all(torch.equal(t, weights(own)[n]) for n, t in weights(ours).items())
    written = json.loads((tmp_path / "ours/checkpoint-5/trainer_state.json").read_text())
    assert written["best_model_checkpoint"] == str(tmp_path / "ours/checkpoint-5")


def test_which_steps_are_too_many():
    assert too_many([], 1, None) == []
    assert too_many([40, 30, 20, 10], 2, None) == [10, 20]
    assert too_many([40, 30, 20, 10], 2, 10) == [20, 30]
    assert too_many([40, 30, 20, 10], 1, 10) == [20, 30]
    assert too_many([20, 40], 1, 30) == [40]  # went back to 20


def test_an_error_in_a_save_leaves_all_as_it_was(tmp_path: Path):
    class Broken(FlashCkptTrainer):
        def _save_rng_state(self, output_dir: str) -> None:
            raise OSError("no")

    made = trainer(tmp_path / "c", 5, kind=Broken)
    with pytest.raises(OSError, match="no"):
        made.train()
    assert (torch.save, safetensors.torch.save_file) == NATIVE
    assert made._flash.directory_of_run is None and complete_steps(str(tmp_path / "c")) == []
    assert made._get_output_dir(None) == str(tmp_path / "c")


# ---- Wrong input ----


def test_what_was_cut_short_or_is_foreign_is_named(tmp_path: Path):
    own = trainer(tmp_path / "c", 5)
    own.train()
    directory = tmp_path / "c/checkpoint-5"
    require_readable(str(directory))
    for name, damage, why in (
        (WEIGHTS, lambda raw: raw[:-10], "and its header speaks of"),
        (WEIGHTS, lambda raw: b"\xff" * 100, "its header would have"),
        (WEIGHTS, lambda raw: b"", "it is empty"),
        (OPTIMIZER, lambda raw: raw[: len(raw) // 2], "was cut short"),
    ):
        good = (directory / name).read_bytes()
        (directory / name).write_bytes(damage(good))
        with pytest.raises(CheckpointError, match=f"checkpoint-5/{name}: .*{why}"):
            flash(trainer(tmp_path / "other", 6)).train(resume_from_checkpoint=str(directory))
        (directory / name).write_bytes(good)
    with pytest.raises(CheckpointError, match="is no directory with a checkpoint"):
        flash(trainer(tmp_path / "other", 6)).train(resume_from_checkpoint=str(tmp_path / "nowhere"))


def test_what_cannot_be_kept_is_refused_when_it_is_asked_for(tmp_path: Path):
    with pytest.raises(ValueError, match="memory_steps is -1"):
        flash(trainer(tmp_path, 1), memory_steps=-1)
    with pytest.raises(ValueError, match="hub_strategy='end'"):
        made = trainer(tmp_path, 1)
        made.args.push_to_hub = True
        flash(made, wait_for_callbacks=False)
    made = flash(trainer(tmp_path, 1))
    with pytest.raises(ValueError, match="in memory already"):
        flash(made)


# ---- Several nodes ----


def at_two(rank: int, place: Path, step: int, extra: int) -> list[bool]:
    with DirectoryCheckpointer(place) as checkpointer:
        files = [File.of_bytes(f"rng_{rank}", b"%d" % (step + rank)), File.of_bytes("args", b"%d" % rank)]
        if checkpointer.saves:
            files.append(File.of_state("weights.pt", torch.full((SMALL,), float(step))))
        if rank == 1 and extra:
            files.append(File.of_bytes("extra", bytes(extra)))
        kept = checkpointer.save_directory(step, files, StorageType.MEMORY)
        return [kept, checkpointer.saves]


def loaded_at(rank: int, place: Path) -> tuple[int, dict[str, bytes], float] | None:
    with DirectoryCheckpointer(place) as checkpointer:
        found = checkpointer.load_directory()
        if not found:
            return None
        step, path = found
        small = {one.name: one.read_bytes() for one in Path(path).iterdir() if one.suffix != ".pt"}
        value = float(torch.load(f"{path}/weights.pt")[-1])
        checkpointer._ranks.gather([0])  # all have read
        return step, small, value


def test_every_node_has_the_files_of_all_ranks(tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    assert job.run(at_two, tmp_path / "c", 5, 0) == [[True, True], [True, False], [True, True]]
    small = {"rng_0": b"5", "rng_1": b"6", "rng_2": b"7", "args": b"0"}
    assert job.run(loaded_at, tmp_path / "c") == [(5, small, 5.0)] * 3
    job.loses(0)
    assert job.run(loaded_at, tmp_path / "c") == [(5, small, 5.0)] * 3
    with pytest.raises(AssertionError, match="rank 1: step 6: 'extra' makes more than 16 MiB"):
        job.run(at_two, tmp_path / "c", 6, 17 << 20)
    smaller = Job(tmp_path / "s", [1])
    (tmp_path / "s").mkdir()
    smaller.memory[0][0], smaller.generation = job.memory[0][0], 9
    assert smaller.run(loaded_at, tmp_path / "c") == [(5, small, 5.0)]
    job.close()
