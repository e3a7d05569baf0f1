"""What lies on the disk and in memory, against DeepSpeed's own save and load of the same state: one rank, in this process."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "DS_ACCELERATOR": "cpu", "MASTER_ADDR": "127.0.0.1"}

from frameworks import WORKERS
from launchers import free_port

os.environ["MASTER_PORT"] = str(free_port())

from training import digest, engine_of, train

from troupe.checkpoint import CheckpointError, KeepLatestStep, StorageType
from troupe.checkpoint.deepspeed import DeepSpeedCheckpointer
from troupe.checkpoint.deepspeed.engine import step_of
from troupe.checkpoint.deepspeed.plugin import settings_of

MEMORY, DISK = StorageType.MEMORY, StorageType.DISK
OWN = {"troupe-manifest.json", "troupe-files-00000"}
STAGES = pytest.mark.parametrize("stage", [0, 1, 2, 3])


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "troupe.checkpoint"):
        yield caplog


def trained(stage: int, steps: int = 3):
    engine = engine_of(stage, "")
    for step in range(1, steps + 1):
        train(engine, step)
    return engine


def same(a: object, b: object, where: str = "") -> None:
    """Tensor for tensor, bit for bit."""
    assert type(a) is type(b), where
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), where
        assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes(), where
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            same(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}/{i}")
    elif hasattr(a, "__dict__"):
        same(vars(a), vars(b), where)
    else:
        assert a == b, where


def read(path: Path) -> object:
    return torch.load(path, weights_only=False)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - OWN


@STAGES
def test_what_lies_on_the_disk_is_what_deepspeed_writes(stage: int, tmp_path: Path) -> None:
    engine = trained(stage)
    with DeepSpeedCheckpointer(engine, tmp_path / "ours") as checkpointer:
        assert checkpointer.save_checkpoint(tmp_path / "ours", client_state={"mine": [1, 2]})
        assert checkpointer.wait_latest_checkpoint(30)
    engine.save_checkpoint(str(tmp_path / "theirs"), client_state={"mine": [1, 2]})
    ours, theirs = tmp_path / "ours/global_step3", tmp_path / "theirs/global_step3"
    assert names(ours) == names(theirs)
    for name in names(theirs):
        same(read(ours / name), read(theirs / name), name)
    assert (tmp_path / "ours/latest").read_text().strip() == (tmp_path / "theirs/latest").read_text()
    assert names(tmp_path / "theirs") <= names(tmp_path / "ours")


@STAGES
def test_deepspeed_reads_it_alone_and_goes_on_with_the_same_bits(stage: int, tmp_path: Path) -> None:
    engine = trained(stage)
    with DeepSpeedCheckpointer(engine, tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(tmp_path) and checkpointer.wait_latest_checkpoint(30)
    another = engine_of(stage, "")
    path, _ = another.load_checkpoint(str(tmp_path))
    assert path and another.global_steps == 3
    for one in (engine, another):
        train(one, 4)
    assert digest(another) == digest(engine)


@STAGES
def test_from_memory_comes_the_state_of_the_moment_of_the_save(stage: int, tmp_path: Path) -> None:
    engine = trained(stage)
    with DeepSpeedCheckpointer(engine, tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(tmp_path, 3, {"mine": 7}, storage_type=MEMORY)
        saved = digest(engine)
        train(engine, 4)
        assert digest(engine) != saved
        another = engine_of(stage, "")
        path, state = DeepSpeedCheckpointer.load_checkpoint(checkpointer_of(another, checkpointer), tmp_path)
    assert (Path(path).parent, state["mine"]) == (tmp_path / "3", 7)
    assert digest(another) == saved
    assert names(tmp_path) <= {".troupe", "zero_to_fp32.py", "zero_to_torch.py"}  # nothing of the step


def checkpointer_of(engine, other: DeepSpeedCheckpointer) -> DeepSpeedCheckpointer:
    """Of another engine, with what the first one's has in memory."""
    steps = other._steps
    other.engine.checkpoint_engine = other._files.plain
    made = object.__new__(DeepSpeedCheckpointer)
    made.__dict__ |= other.__dict__ | {"engine": engine, "_steps": steps}
    made._attach()
    return made


def test_a_save_for_which_latest_is_not_wanted_leaves_it(tmp_path: Path) -> None:
    engine = trained(1)
    with DeepSpeedCheckpointer(engine, tmp_path) as checkpointer:
        assert checkpointer.save_checkpoint(tmp_path) and checkpointer.wait_latest_checkpoint(30)
        train(engine, 4)
        assert checkpointer.save_checkpoint(tmp_path, save_latest=False)
        assert checkpointer.wait_latest_checkpoint(30)
    assert (tmp_path / "latest").read_text().strip() == "global_step3"
    assert (tmp_path / "global_step4").is_dir()


def test_steps_are_removed_as_the_strategy_says(tmp_path: Path) -> None:
    engine = trained(1, 0)
    with DeepSpeedCheckpointer(engine, tmp_path, deletion_strategy=KeepLatestStep(2, tmp_path)) as checkpointer:
        for step in range(1, 5):
            train(engine, step)
            assert checkpointer.save_checkpoint(tmp_path) and checkpointer.wait_latest_checkpoint(30)
    assert {path.name for path in tmp_path.glob("global_step*")} == {"global_step3", "global_step4"}


def test_other_tags_and_other_directories_are_deepspeeds(tmp_path: Path, said) -> None:
    engine = trained(1)
    with DeepSpeedCheckpointer(engine, tmp_path / "a") as checkpointer:
        assert checkpointer.save_checkpoint(tmp_path / "a", "best", save_latest=False)
        assert engine.save_checkpoint(tmp_path / "b")
        assert engine.save_16bit_model(str(tmp_path / "c"), "model.bin")
    assert (tmp_path / "a/best/mp_rank_00_model_states.pt").is_file() and not (tmp_path / "a/latest").exists()
    assert (tmp_path / "b/latest").read_text() == "global_step3"
    assert set(torch.load(tmp_path / "c/model.bin")) >= {"first.weight", "seen"}
    assert "a/best is written by DeepSpeed itself" in said.text


def test_the_engines_own_calls_go_through_memory_until_it_is_closed(tmp_path: Path) -> None:
    engine = trained(1)
    with DeepSpeedCheckpointer(engine, tmp_path, disk_interval=2) as checkpointer:
        assert engine.save_checkpoint(str(tmp_path), None, {}, True, True)  # the last one: exclude_frozen_parameters
        assert not (tmp_path / "global_step3").exists()
        train(engine, 4)
        assert engine.save_checkpoint(str(tmp_path)) and checkpointer.wait_latest_checkpoint(30)
        assert (tmp_path / "latest").read_text().strip() == "global_step4"
    assert "save_checkpoint" not in vars(engine)
    assert type(engine.checkpoint_engine).__name__ == "TorchCheckpointEngine"


def test_what_pickle_does_not_take_is_named_and_costs_that_save_alone(tmp_path: Path) -> None:
    engine = trained(2)
    with DeepSpeedCheckpointer(engine, tmp_path) as checkpointer:
        with pytest.raises(Exception, match="lambda"):
            checkpointer.save_checkpoint(tmp_path, client_state={"mine": lambda: None})
        assert checkpointer.save_checkpoint(tmp_path) and checkpointer.wait_latest_checkpoint(30)


# ---- Wrong input ----


def two_steps(place: Path, stage: int = 1) -> None:
    engine = trained(stage, 0)
    with DeepSpeedCheckpointer(engine, place) as checkpointer:
        for step in (1, 2):
            train(engine, step)
            assert checkpointer.save_checkpoint(place, client_state={"step": step})
            assert checkpointer.wait_latest_checkpoint(30)


OPTIMIZER = "zero_pp_rank_0_mp_rank_00_optim_states.pt"


def truncated(place: Path, step: int) -> None:
    path = place / f"global_step{step}" / OPTIMIZER
    path.write_bytes(path.read_bytes()[:-100])


def foreign(place: Path, step: int) -> None:
    shutil.copy(place / f"global_step{3 - step}" / OPTIMIZER, place / f"global_step{step}" / OPTIMIZER)


@pytest.mark.parametrize("damage", [truncated, foreign])
def test_a_truncated_or_foreign_shard_is_named_and_passed_over(damage, tmp_path: Path, said) -> None:
    two_steps(tmp_path)
    damage(tmp_path, 2)
    with DeepSpeedCheckpointer(engine_of(1, ""), tmp_path) as checkpointer:
        _, state = checkpointer.load_checkpoint(tmp_path)
    assert state["step"] == 1
    assert f"global_step2/{OPTIMIZER}" in said.text and "step 2" in said.text and "rank 0" in said.text


def test_where_all_are_damaged_nothing_is_loaded(tmp_path: Path) -> None:
    two_steps(tmp_path)
    for step in (1, 2):
        truncated(tmp_path, step)
    with (
        DeepSpeedCheckpointer(engine_of(1, ""), tmp_path) as checkpointer,
        pytest.raises(CheckpointError, match=rf"no step at .* can be read: .*global_step\d/{OPTIMIZER}"),
    ):
        checkpointer.load_checkpoint(tmp_path)


def test_deepspeeds_own_steps_are_loaded_and_their_damage_is_named(tmp_path: Path) -> None:
    engine = trained(1)
    engine.save_checkpoint(str(tmp_path), client_state={"mine": 1})
    with DeepSpeedCheckpointer(engine_of(1, ""), tmp_path) as checkpointer:
        path, state = checkpointer.load_checkpoint(tmp_path)
        assert path == str(tmp_path / "global_step3/mp_rank_00_model_states.pt") and state["mine"] == 1
        truncated(tmp_path, 3)
        with pytest.raises(CheckpointError, match=f"rank 0: .*global_step3/{OPTIMIZER}: "):
            checkpointer.load_checkpoint(tmp_path)
        assert checkpointer.engine.load_checkpoint(str(tmp_path), load_optimizer_states=False)[0]


def test_a_tag_is_what_the_job_begins_with_and_then_a_step_on_the_disk(tmp_path: Path) -> None:
    two_steps(tmp_path)
    with DeepSpeedCheckpointer(engine_of(1, ""), tmp_path) as checkpointer:
        for _ in range(2):
            assert checkpointer.load_checkpoint(tmp_path, "global_step1")[1]["step"] == 1
        assert checkpointer.load_checkpoint(tmp_path)[1]["step"] == 2


def test_an_empty_directory_has_nothing(tmp_path: Path) -> None:
    with DeepSpeedCheckpointer(engine_of(1, ""), tmp_path) as checkpointer:
        assert checkpointer.load_checkpoint(tmp_path) == (None, None)


@pytest.mark.parametrize(
    "tag, step",
    [
        ("40", 40), ("100", 100), ("7", 7), ("global_step50", 50), ("v2-10", 10), ("0012", 12),
        ("best", None), (".5", None), ("a/5", None), ("1" * 19, None), ("step" + "1" * 19, None),
    ],
)  # fmt: skip
def test_all_digits_at_the_end_of_a_tag_are_the_step(tag: str, step: int | None) -> None:
    assert step_of(tag) == step


def test_steps_whose_tags_are_numbers_alone_are_steps_of_their_own(tmp_path: Path) -> None:
    """As in DLRover's ds_train.py: `tag=steps`."""
    engine = trained(1)
    with DeepSpeedCheckpointer(engine, tmp_path, deletion_strategy=KeepLatestStep(2, tmp_path)) as checkpointer:
        for step in (9, 10, 20):
            assert checkpointer.save_checkpoint(tmp_path, step) and checkpointer.wait_latest_checkpoint(30)
    assert sorted(os.listdir(tmp_path / ".troupe/steps")) == ["10", "20"]
    assert {path.name for path in tmp_path.glob("[0-9]*")} == {"10", "20"}
    assert (tmp_path / "dlrover_latest.txt").read_text().strip() == "20"


class Odd:
    checkpoint_engine = None
    save_checkpoint = load_checkpoint = _get_all_ckpt_names = _get_ckpt_name = None
    _copy_recovery_script = None


def test_engines_that_are_not_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"this DeepSpeed is .*, and its Odd has no _config: known are 0\.16\.5 to"):
        DeepSpeedCheckpointer(Odd(), tmp_path)
    engine = engine_of(1, "")
    with DeepSpeedCheckpointer(engine, tmp_path), pytest.raises(CheckpointError, match="has a DeepSpeedCheckpointer already"):
        DeepSpeedCheckpointer(engine, tmp_path)
    engine._config.use_node_local_storage = True
    with pytest.raises(CheckpointError, match="use_node_local_storage"):
        DeepSpeedCheckpointer(engine, tmp_path)
    engine.checkpoint_engine = Odd()
    with pytest.raises(CheckpointError, match="writes checkpoints with Odd"):
        DeepSpeedCheckpointer(engine, tmp_path)


@pytest.mark.parametrize(
    "told, why",
    [
        (5, "checkpoint.troupe is 5; it is true, false or settings"),
        ({"disk": 1}, "checkpoint.troupe has no 'disk'; it has checkpoint_dir, disk_interval"),
        ({"images": "2"}, "checkpoint.troupe.images is '2', no int"),
        ({"images": True}, "checkpoint.troupe.images is True, no int"),
    ],
)
def test_settings_that_cannot_be_are_named(told: object, why: str) -> None:
    with pytest.raises(CheckpointError, match=why.replace("'", ".")):
        settings_of({"checkpoint": {"troupe": told}})


def test_settings() -> None:
    assert settings_of({"checkpoint": {"troupe": True}}) == {}
    assert settings_of({"checkpoint": {"troupe": {"images": 3}}}) == {"images": 3}
    for config in (None, {}, {"checkpoint": {}}, {"checkpoint": {"troupe": False}}, {"checkpoint": 5}):
        assert settings_of(config) is None


def test_without_deepspeed_the_import_says_what_to_install() -> None:
    script = "import sys; sys.modules['deepspeed'] = None; import troupe.checkpoint.deepspeed"
    environment = os.environ | WORKERS
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 1
    assert "ImportError: troupe.checkpoint.deepspeed needs DeepSpeed" in ended.stderr
    assert "pip install deepspeed" in ended.stderr


def test_the_manifest_says_whose_layout_it_is(tmp_path: Path) -> None:
    two_steps(tmp_path)
    manifest = json.loads((tmp_path / "global_step2/troupe-manifest.json").read_text())
    assert manifest["layout"] == "deepspeed"
