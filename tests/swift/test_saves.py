"""What ms-swift's own trainer asks of the checkpointer, what it gets, and what lies on the disk then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Start
from launchers import Run
from sft import HERE, SCRIPT, arguments, curve, names, require_same_end, resumed, runs, same, tracked, weights

WORKER = str(HERE / "worker.py")
OF_BOTH = {"args.json", "training_args.bin", "optimizer.pt", "scheduler.pt", "trainer_state.json"}
NAMES = {
    "full": OF_BOTH | {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    | {"chat_template.jinja"},
    "lora": OF_BOTH | {"adapter_config.json", "adapter_model.bin", "additional_config.json", "README.md"},
}
# What the run's name is in, or a set of words, or the inner folder of an archive.
OF_THE_RUN = {"args.json", "training_args.bin", "trainer_state.json", "adapter_config.json", "optimizer.pt"}
DEFERRED = ("model.safetensors", "adapter_model.bin", "optimizer.pt", "scheduler.pt", "rng_state", "training_args.bin")

ALONE = """
import sys
from importlib.machinery import PathFinder
class Fewer(PathFinder):
    @staticmethod
    def find_spec(name, path=None, target=None):
        hidden = name.split(".")[0] in ("deepspeed", "kubernetes")
        return None if hidden else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Fewer
from dlrover.trainer.torch.flash_checkpoint.engine import CheckpointEngine
from dlrover.trainer.torch.flash_checkpoint.hf_trainer import HfDdpCheckpointer, HfDeepSpeedCheckpointer, HfFlashCheckpointer
import logging, swift.trainers.utils as utils
said = []
utils.logger.warning = said.append
utils.check_dlrover_flash_checkpoint_api(HfFlashCheckpointer, CheckpointEngine)
assert not said, said
kept = HfDdpCheckpointer(sys.argv[1])
assert callable(kept.ckpt_agent.save) and kept.async_save_engine.wait_latest_checkpoint(1800, 0)
assert "deepspeed" not in sys.modules
"""


def job(start: Start, data: Path, output: Path, deed: str, world: int = 2, steps: int = 9, save_steps: int = 3, **more) -> Run:
    output.mkdir()
    command = [WORKER, str(output), deed, *arguments(data, output, steps, save_steps, **more)]
    run = start(command, procs=world, restarts=1, options=["--shutdown-timeout", "5"])
    assert run.wait(400) == [0], run.err()[-4000:]
    assert run.leftovers() == []
    return run


def notes(output: Path, rank: int) -> list[dict]:
    return [json.loads(line) for line in (output / f"rank-{rank}.jsonl").read_text().splitlines()]


def test_names_are_there_without_deepspeed_and_kubernetes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ALONE, str(tmp_path / "run")], check=True, timeout=200)


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("kind", ["full", "lora"])
def test_files_are_those_of_a_plain_run(start: Start, data: Path, tmp_path: Path, kind: str, world: int) -> None:
    more = {"tuner_type": kind} | ({"target_modules": "all-linear"} if kind == "lora" else {})
    run = job(start, data, tmp_path / "kept", "-", world, **more)
    [kept] = runs(tmp_path / "kept")
    plain_run = start([SCRIPT, *arguments(data, tmp_path / "plain", 9, 3, use_flash_ckpt="false", **more)], procs=world)
    assert plain_run.wait(400) == [0], plain_run.err()[-4000:]
    [plain] = runs(tmp_path / "plain")
    random = {"rng_state.pth"} if world == 1 else {"rng_state_0.pth", "rng_state_1.pth"}
    for step in (3, 6, 9):
        ours, theirs = kept / f"checkpoint-{step}", plain / f"checkpoint-{step}"
        assert names(ours) == NAMES[kind] | random
        # What ms-swift asks for with flash checkpoints is another name for the weights of adapters.
        assert {name.replace("_model.bin", "_model.safetensors") for name in names(ours)} == names(theirs)
        require_same_end(ours, theirs)
        for name in names(ours) & names(theirs) - OF_THE_RUN:
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    assert tracked(kept) == 9
    for rank in range(world):
        rows = notes(tmp_path / "kept", rank)
        assert [(row["step"], row["blocking"], row["kept"]) for row in rows] == [(3, False, True), (6, False, True), (9, True, True)]
        assert all(row["left"] == [] for row in rows)
        assert not [name for row in rows for name in row["there"] if name.startswith(DEFERRED)], "nothing large was written by the call"
        assert rows[-1]["tracked"] == 9 and all(row["tracked"] in (None, 3, 6) for row in rows[:-1])
    assert "is not saved" not in run.err() + run.out()


def test_while_the_disk_is_slow_all_ranks_skip_the_same_steps(start: Start, data: Path, tmp_path: Path) -> None:
    job(start, data, tmp_path / "out", "stop:2", steps=12, save_steps=1)
    [run] = runs(tmp_path / "out")
    one, other = ([(row["step"], row["kept"]) for row in notes(tmp_path / "out", rank)] for rank in range(2))
    assert one == other and [step for step, _ in one] == list(range(1, 13))
    kept = [step for step, is_kept in one if is_kept]
    for rank in range(2):
        [stopped] = [row for row in notes(tmp_path / "out", rank) if "waited" in row]
        assert stopped["step"] == 2 and stopped["waited"] is False and stopped["waited_seconds"] < 8, "its time was over"
    assert len(kept) < 12, "no save found all memory being written"
    assert kept[-1] == 12, "the last one waits"
    last = notes(tmp_path / "out", 0)[-1]
    assert last["blocking"] and last["tracked"] == 12 and last["seconds"] > 1
    there = {int(path.name.split("-")[1]) for path in run.glob("checkpoint-*")}
    assert there == set(kept), "what was skipped is gone, and what was kept is not"
    for step in kept:
        assert names(run / f"checkpoint-{step}") == NAMES["full"] | {"rng_state_0.pth", "rng_state_1.pth"}


def test_a_worker_that_dies_before_the_commit_loses_no_step(start: Start, data: Path, tmp_path: Path) -> None:
    run = job(start, data, tmp_path / "out", "after:6")
    rows = notes(tmp_path / "out", 1)
    assert rows[1]["step"] == 6 and rows[1]["kept"] and rows[1]["tracked"] in (None, 3), "it died while step 6 was in memory alone"
    assert resumed(run.out() + run.err()) == [(0, 6)]
    first, second = runs(tmp_path / "out")
    assert tracked(first) == 6 and tracked(second) == 9


def test_beyond_its_restarts_the_step_in_memory_is_written_and_the_next_job_goes_on_from_it(start: Start, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    options = ["--save_at_breakpoint", "--shutdown-timeout", "5"]
    run = start([WORKER, str(output), "after:6", *arguments(data, output, 9, 3)], procs=2, restarts=0, options=options)
    assert run.wait(400) != [0]
    rows = notes(output, 1)
    assert rows[1]["step"] == 6 and rows[1]["kept"] and rows[1]["tracked"] in (None, 3), "it died while step 6 was in memory alone"
    [first] = runs(output)
    assert tracked(first) == 6
    assert names(first / "checkpoint-6") == NAMES["full"] | {"rng_state_0.pth", "rng_state_1.pth"}
    run = start([SCRIPT, *arguments(data, output, 9, 3)], procs=2)
    assert run.wait(400) == [0], run.err()[-4000:]
    assert resumed(run.out() + run.err()) == [(0, 6)]


def test_a_step_that_a_rank_lacks_is_never_taken(start: Start, data: Path, tmp_path: Path) -> None:
    run = job(start, data, tmp_path / "out", "before:6")
    assert resumed(run.out() + run.err()) == [(0, 3)]
    first, second = runs(tmp_path / "out")
    assert tracked(first) == 3 and not (first / "checkpoint-6/troupe-manifest.json").exists()
    assert tracked(second) == 9 and [step for step, *_ in curve(second / "checkpoint-9")] == list(range(1, 10))


def test_the_limit_counts_complete_steps(start: Start, data: Path, tmp_path: Path) -> None:
    job(start, data, tmp_path / "out", "stop:4", steps=12, save_steps=2, save_total_limit=2)
    [run] = runs(tmp_path / "out")
    complete = sorted(int(path.parent.name.split("-")[1]) for path in run.glob("checkpoint-*/troupe-manifest.json"))
    assert len(complete) == 2 and complete[-1] == 12
    assert {f"checkpoint-{step}" for step in complete} == {path.name for path in run.glob("checkpoint-*")}
    kept = [row["step"] for row in notes(tmp_path / "out", 0) if row["kept"]]
    assert complete == kept[-2:]
    same(weights(run / "checkpoint-12"), weights(run / "last-checkpoint"))


@pytest.mark.parametrize("world", [1, 2])
def test_a_worker_that_dies_after_the_last_save_does_not_begin_anew(start: Start, data: Path, tmp_path: Path, world: int) -> None:
    run = job(start, data, tmp_path / "out", "last:9", world)
    assert resumed(run.out() + run.err()) == [(0, 9)]
    first, second = runs(tmp_path / "out")
    assert tracked(first) == tracked(second) == 9
    assert (second / "checkpoint-9").resolve() == first / "checkpoint-9" and len(list(second.glob("checkpoint-*"))) == 1
    rows = [json.loads(line) for line in (second / "logging.jsonl").read_text().splitlines()]
    assert [row["global_step"] for row in rows] == [9], "no step is made once more"


def test_a_job_that_begins_with_a_path_does_not_go_back_to_it(start: Start, data: Path, tmp_path: Path) -> None:
    job(start, data, tmp_path / "out", "-", 1, steps=4, save_steps=2)
    [first] = runs(tmp_path / "out")
    (tmp_path / "notes").mkdir()
    more = arguments(data, tmp_path / "out", 8, 2, resume_from_checkpoint=first / "checkpoint-2")
    run = start([WORKER, str(tmp_path / "notes"), "last:6", *more], procs=1, restarts=1)
    assert run.wait(400) == [0], run.err()[-4000:]
    assert resumed(run.out() + run.err()) == [(0, 2), (1, 6)]
    assert tracked(runs(tmp_path / "out")[-1]) == 8
