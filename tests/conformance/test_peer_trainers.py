"""Trainers that save by their own code through DLRover's classes, as ms-swift's does."""

from __future__ import annotations

import gc
import inspect
import io
import weakref
from pathlib import Path

import pytest
import safetensors.torch
import torch
from few_ranks import Job, context, said
from tiny_trainer import model
from transformers import GPT2LMHeadModel

from troupe.checkpoint import complete_steps
from troupe.checkpoint.transformers import HfDdpCheckpointer, HfDeepSpeedCheckpointer
from troupe.checkpoint.transformers.peer import SaveEngine, renamed

OF_RANK_0 = {"model.safetensors", "scheduler.pt", "config.json", "generation_config.json"}

context.set_forkserver_preload(["torch", "torch.distributed", "troupe.checkpoint.transformers"])


def save_as_swift_does(kept: HfDdpCheckpointer, run: Path, step: int, rank: int, world: int, safe: bool) -> bool:
    """What its trainer does between the two assignments to torch.save; no rank but 0 has should_save."""
    directory, native = run / f"checkpoint-{step}", torch.save
    directory.mkdir(parents=True, exist_ok=True)
    torch.save = kept.ckpt_agent.save
    try:
        if rank == 0:
            made = model()
            made.generation_config.save_pretrained(directory)
            made.config.save_pretrained(directory)
            torch.save(made.state_dict(), f"{directory}/pytorch_model.bin")
            torch.save({"step": step}, f"{directory}/scheduler.pt")
            opened = io.BytesIO()
            torch.save({"a": 1}, opened)
            assert torch.load(io.BytesIO(opened.getvalue())) == {"a": 1}
        name = f"rng_state_{rank}.pth" if world > 1 else "rng_state.pth"
        torch.save({"cpu": torch.full((10,), rank)}, f"{directory}/{name}")
        if safe:
            torch.save({"safe_serialization": True}, "safe_serialization")
        assert not (directory / name).exists()
    finally:
        torch.save = native
    return kept.save_checkpoint_to_storage(step, world == 1)  # of a larger world nothing is written here


@pytest.mark.parametrize("safe", [True, False])
def test_files_come_under_the_names_that_were_asked_for_and_then_the_tracker(tmp_path: Path, safe: bool):
    kept = HfDdpCheckpointer(str(tmp_path))
    assert save_as_swift_does(kept, tmp_path, 3, 0, 1, safe) is True
    assert not kept.ckpt_agent.state_dict and not kept.ckpt_agent.paths
    assert kept.async_save_engine.wait_latest_checkpoint(60, 3)
    assert (tmp_path / "dlrover_latest.txt").read_text() == "3"
    directory = tmp_path / "checkpoint-3"
    weights = "model.safetensors" if safe else "pytorch_model.bin"
    names = {path.name for path in directory.iterdir() if not path.name.startswith((".", "troupe-"))}
    assert names == {weights, "scheduler.pt", "rng_state.pth", "config.json", "generation_config.json"}
    read = GPT2LMHeadModel.from_pretrained(directory).state_dict()
    assert all(torch.equal(tensor, read[name]) for name, tensor in model().state_dict().items())
    torch.save({"step": 3}, tmp_path / "scheduler.pt")
    assert (directory / "scheduler.pt").read_bytes() == (tmp_path / "scheduler.pt").read_bytes()
    if safe:
        model().save_pretrained(tmp_path / "own")
        assert (directory / weights).read_bytes() == (tmp_path / "own" / weights).read_bytes()
    kept.close()


def test_names_of_files_of_safetensors():
    assert renamed("pytorch_model.bin") == "model.safetensors"
    assert renamed("pytorch_model-00001-of-00002.bin") == "model-00001-of-00002.safetensors"
    assert renamed("deep/adapter_model.bin") == "deep/adapter_model.safetensors"
    for other in ("optimizer.bin", "training_args.bin", "mp_rank_00_model_states.pt", "pytorch_model.pt"):
        assert renamed(other) is None


def test_no_tensors_are_kept_from_the_last_save(tmp_path: Path):
    kept = HfDdpCheckpointer(str(tmp_path))
    tensor = torch.zeros(1 << 20)
    alive = weakref.ref(tensor)
    kept.ckpt_agent.save({"x": tensor}, f"{tmp_path}/checkpoint-1/x.pt")
    del tensor
    assert kept.save_checkpoint_to_memory(1)
    gc.collect()
    assert alive() is None
    assert kept.async_save_engine.wait_latest_checkpoint(0.1)  # nothing is pending
    kept.close()


def test_what_cannot_be_a_file_of_the_step_is_named(tmp_path: Path):
    kept = HfDdpCheckpointer(str(tmp_path))
    kept.ckpt_agent.save({}, "/elsewhere/x.pt")
    with pytest.raises(ValueError, match="/elsewhere/x.pt is not below .*/checkpoint-1"):
        kept.save_checkpoint_to_storage(1)
    kept.ckpt_agent.save({"a": "text"}, f"{tmp_path}/checkpoint-1/pytorch_model.bin")
    kept.ckpt_agent.save({"safe_serialization": True}, "safe_serialization")
    with pytest.raises(ValueError, match=r"'pytorch_model.bin' cannot be model.safetensors: 'a' is no tensor but a str"):
        kept.save_checkpoint_to_storage(1)
    kept.close()
    with pytest.raises(ValueError, match="storage: a object is code of its own"):
        HfDdpCheckpointer(str(tmp_path), object())
    with pytest.raises(ValueError, match="engine: a NoneType is no engine"):
        HfDeepSpeedCheckpointer(None, str(tmp_path))


def test_signatures_are_those_that_trainers_look_for():
    save = inspect.signature(HfDdpCheckpointer.save_checkpoint_to_storage)
    assert list(save.parameters) == ["self", "step", "blocking"]
    assert list(inspect.signature(HfDdpCheckpointer).parameters) == ["checkpoint_dir", "storage", "comm_backend"]
    deepspeed = inspect.signature(HfDeepSpeedCheckpointer).parameters
    assert list(deepspeed) == ["engine", "checkpoint_dir", "storage", "comm_backend"]


def at_a_rank(rank: int, run: Path, step: int) -> tuple[set[str], set[str]]:
    """The names of its files in memory, and of the tensors among the weights."""
    kept = HfDdpCheckpointer(str(run))
    assert save_as_swift_does(kept, run, step, rank, 3, True)
    arena = kept.async_save_engine._arena
    held = arena.files(arena.newest())
    weights = bytes(held["model.safetensors"]) if rank == 0 else b""
    kept.close()
    return set(held), set(safetensors.torch.load(weights)) if weights else set()


def test_every_rank_has_its_own_files_in_memory(tmp_path: Path):
    job = Job(tmp_path, [3])
    found = job.run(at_a_rank, tmp_path / "run", 4)
    for rank, (names, _) in enumerate(found):
        assert names == {f"rng_state_{rank}.pth"} | (OF_RANK_0 if rank == 0 else set())
    assert "lm_head.weight" not in found[0][1]
    assert complete_steps(str(tmp_path / "run")) == []  # there is no launcher here that writes it
    job.close()


def saves_and_is_cut_off(rank: int, run: Path) -> None:
    """Both ranks have kept step 6, and rank 0 also step 9, when rank 1 died."""
    kept = HfDdpCheckpointer(str(run))
    for step in (3, 6):
        assert save_as_swift_does(kept, run, step, rank, 2, False)
    engine = kept.async_save_engine
    if rank == 0:
        to = engine._destination(*engine.default_file(9))
        engine._arena.save(9, {}, generation=engine.me.generation, save=9, rank=0, world_size=2, to=to)
    assert [image.step for image in engine._arena.found()][0] == (9 if rank == 0 else 6)


def is_started_again(rank: int, run: Path) -> tuple[int | None, int, list[str]]:
    engine = SaveEngine(str(run), save_timeout=1)
    found = engine.finish_earlier()  # there is no launcher here that writes it
    return found, engine._saves._last.step, said.lines


def test_what_is_written_to_its_end_is_the_newest_step_of_all_ranks(tmp_path: Path):
    job = Job(tmp_path, [2])
    job.run(saves_and_is_cut_off, tmp_path / "run")
    for found, wanted, lines in job.run(is_started_again, tmp_path / "run"):
        assert found is None and wanted == 6, "what is not written is not gone on from, and what a rank lacks is not wanted"
        assert any("it is not known what became of the last checkpoint" in line for line in lines)
    job.close()


def finds_what_it_has_saved_itself(rank: int, run: Path) -> int | None:
    kept = HfDdpCheckpointer(str(run))
    assert save_as_swift_does(kept, run, 3, rank, 2, False)
    return kept.async_save_engine.finish_earlier()


def test_what_a_process_has_saved_itself_is_not_of_an_earlier_one(tmp_path: Path):
    job = Job(tmp_path, [2])
    assert job.run(finds_what_it_has_saved_itself, tmp_path / "run") == [None, None]
    job.close()
