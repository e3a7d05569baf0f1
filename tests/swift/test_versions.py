"""Which checkpoint a start goes on from: ms-swift's own rule, and what is done for it before it is asked. One rank."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import MethodType, SimpleNamespace

import pytest
import torch
from dlrover.trainer.torch.flash_checkpoint.hf_trainer import HfDdpCheckpointer
from swift.pipelines.train import sft
from swift.trainers.mixin import SwiftMixin

from troupe.checkpoint import CheckpointError
from troupe.checkpoint.transformers import ms_swift
from troupe.checkpoint.transformers.peer import SaveEngine
from troupe.checkpoint.transformers.versions import carry, earlier_runs, newest

# As its pipeline begins; the names were imported before ms-swift here.
sft.SwiftSft._prepare_flash_ckpt(SimpleNamespace(args=SimpleNamespace(use_flash_ckpt=True)))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    for engine in SaveEngine._prepared.values():
        engine.close()
    SaveEngine._prepared.clear()


def trainer_of(run: Path, **more: object) -> SimpleNamespace:
    given = {"output_dir": str(run), "use_flash_ckpt": True, "resume_from_checkpoint": None, "callbacks": []} | more
    trainer = SimpleNamespace(args=SimpleNamespace(**given))
    trainer.get_resume_checkpoint = MethodType(SwiftMixin.get_resume_checkpoint, trainer)
    return trainer


def own_rule(run: Path) -> str | None:
    """ms-swift's, and nothing of ours."""
    return trainer_of(run).get_resume_checkpoint()


def answer(run: Path, **more: object) -> str | None:
    return sft.SwiftSft._get_resume_checkpoint(SimpleNamespace(), trainer_of(run, **more))


def started(output: Path, version: int) -> Path:
    run = output / f"v{version}-2026112{version}-1200{version:02}"
    run.mkdir(parents=True)
    return run


def saved(run: Path, *steps: int, of: int = 100) -> None:
    """Steps as ms-swift saves them; the run would end with step `of`."""
    kept = HfDdpCheckpointer(str(run))
    for step in steps:
        directory = run / f"checkpoint-{step}"
        directory.mkdir()
        (directory / "trainer_state.json").write_text(json.dumps({"max_steps": of, "global_step": step}))
        kept.ckpt_agent.save({"x": torch.full((1 << 16,), float(step))}, f"{directory}/optimizer.pt")
        kept.ckpt_agent.save({"a": step}, f"{directory}/scheduler.pt")
        assert kept.save_checkpoint_to_storage(step, True)
    kept.close()


def real(path: str | None) -> Path | None:
    return path and Path(path).resolve()


def test_a_run_that_was_cut_off_before_its_first_save_hides_nothing(tmp_path: Path) -> None:
    first = started(tmp_path, 0)
    saved(first, 3, 6)
    second = started(tmp_path, 1)
    assert answer(second) == own_rule(second) == str(first / "checkpoint-6")
    third = started(tmp_path, 2)
    assert own_rule(third) is None, "ms-swift would begin anew: this is what is mended"
    for version in range(2, 5):  # each is cut off
        run = tmp_path / f"v{version}" if version != 2 else third
        run = run if run.exists() else started(tmp_path, version)
        path = answer(run)
        before = earlier_runs(str(run))[0]
        assert path == own_rule(run) == f"{before}/checkpoint-6"
        assert real(path) == first / "checkpoint-6"
        assert Path(before, "dlrover_latest.txt").read_text() == "6"
        assert Path(before, "checkpoint-6").readlink() == Path("..", first.name, "checkpoint-6")  # no chain of links
    assert json.loads((Path(path) / "trainer_state.json").read_text())["global_step"] == 6


def test_versions_are_numbers_and_other_directories_are_none(tmp_path: Path) -> None:
    for name in ("v2-x", "v10-x", "v9-x", "vx", "w1", "v", "v1", "v-3"):
        (tmp_path / name).mkdir()
    (tmp_path / "v3-file").write_text("")
    assert [Path(run).name for run in earlier_runs(str(tmp_path / "v10-x"))] == ["v9-x", "v2-x", "v1"]
    assert earlier_runs(str(tmp_path / "vx")) == earlier_runs(str(tmp_path / "absent/w")) == []


def test_a_finished_run_is_not_gone_on_with(tmp_path: Path) -> None:
    saved(started(tmp_path, 0), 3, of=100)
    saved(started(tmp_path, 1), 6, of=6)
    assert answer(started(tmp_path, 2)) is None
    assert answer(started(tmp_path, 3)) is None, "nor with what was before it"


def test_the_newest_complete_step_counts_and_not_an_old_tracker(tmp_path: Path) -> None:
    run = started(tmp_path, 0)
    saved(run, 3, 6)
    (run / "dlrover_latest.txt").write_text("3")  # the launcher was killed between manifest and tracker
    (run / "checkpoint-9").mkdir()  # ms-swift had begun to write it
    (run / "checkpoint-9/trainer_state.json").write_text('{"max_steps": 100}')
    path = answer(started(tmp_path, 1))
    assert path == str(run / "checkpoint-6") and (run / "dlrover_latest.txt").read_text() == "6"


@pytest.mark.parametrize("how", ["truncated", "changed", "removed", "foreign", "no step", "no state"])
def test_a_damaged_step_is_named_and_the_one_before_it_is_taken(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = started(tmp_path, 0)
    saved(run, 3, 6)
    file = run / "checkpoint-6" / ("trainer_state.json" if how == "no state" else "optimizer.pt")
    raw = file.read_bytes()
    if how == "truncated":
        file.write_bytes(raw[: len(raw) // 2])
    elif how == "changed":
        file.write_bytes(raw[:5000] + b"?" + raw[5001:])
    elif how == "removed":
        file.unlink()
    elif how == "foreign":
        file.write_bytes((run / "checkpoint-3/optimizer.pt").read_bytes())
    elif how == "no step":
        file.parent.rename(tmp_path / "moved")
    else:
        file.write_text("[]")
    with caplog.at_level(logging.ERROR, "troupe.checkpoint"):
        path = answer(started(tmp_path, 1))
    assert path == str(run / "checkpoint-3")
    assert (tmp_path / "moved" if how == "no step" else file.parent).is_dir(), "what is damaged stays to be looked at"
    if how not in ("no step", "removed"):  # those are no complete steps any more
        assert f"step 6 in {run} is not resumed from" in caplog.text and str(file) in caplog.text


@pytest.mark.parametrize("how", ["truncated", "removed"])
def test_where_all_are_damaged_nothing_begins_anew(tmp_path: Path, how: str) -> None:
    run = started(tmp_path, 0)
    saved(run, 3)
    file = run / "checkpoint-3/optimizer.pt"
    if how == "truncated":
        file.write_bytes(file.read_bytes()[:1000])
    else:
        shutil.rmtree(file.parent)
    with pytest.raises(CheckpointError, match=f"{run} has no checkpoint that can be resumed from"):
        answer(started(tmp_path, 1))


@pytest.mark.parametrize("text", ["", "six", "-3", "99999999999999999999999999999999999999"])
def test_a_tracker_that_names_no_step_is_mended(tmp_path: Path, text: str) -> None:
    run = started(tmp_path, 0)
    saved(run, 3)
    (run / "dlrover_latest.txt").write_text(text)
    assert answer(started(tmp_path, 1)) == str(run / "checkpoint-3")
    assert (run / "dlrover_latest.txt").read_text() == "3"


def test_without_a_version_the_directory_itself_is_looked_at(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    assert answer(output) is None
    closed_engine = SaveEngine._prepared.pop(str(output))
    closed_engine.close()
    saved(output, 3, 6)
    assert own_rule(output) is None
    assert answer(output) == str(output / "checkpoint-6")


def test_a_run_is_not_saved_over_one_that_has_ended(tmp_path: Path) -> None:
    output = tmp_path / "out"
    saved(output, 3, 6, of=6)
    with pytest.raises(CheckpointError, match=r"output_dir: in .*/out a run has ended with checkpoint-6.* --output_dir"):
        answer(output)
    assert (output / "checkpoint-6").is_dir()


def test_a_path_that_is_given_counts_and_is_looked_at(tmp_path: Path) -> None:
    run = started(tmp_path, 0)
    saved(run, 3, 6)
    given = str(run / "checkpoint-3")
    assert answer(started(tmp_path, 1), resume_from_checkpoint=given) == given
    file = run / "checkpoint-3/scheduler.pt"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=r"checkpoint-3/scheduler.pt: "):
        answer(started(tmp_path, 2), resume_from_checkpoint=given)


def test_checkpoints_of_dlrover_itself_are_gone_on_with(tmp_path: Path) -> None:
    run = started(tmp_path, 0)
    for step in (3, 6):
        directory = run / f"checkpoint-{step}"
        directory.mkdir()
        (directory / "trainer_state.json").write_text('{"max_steps": 100}')
        torch.save({}, directory / "optimizer.pt")
    (run / "dlrover_latest.txt").write_text("3")
    started(tmp_path, 1)
    assert real(answer(started(tmp_path, 2))) == run / "checkpoint-3"


def test_what_a_run_that_was_cut_off_has_left_is_not_taken_for_the_step(tmp_path: Path) -> None:
    run = started(tmp_path, 0)
    saved(run, 3)
    left = started(tmp_path, 1) / "checkpoint-3"
    left.mkdir()
    (left / "trainer_state.json").write_text('{"max_steps": 100}')
    found = newest([str(left.parent), str(run)])
    assert found and found.run == str(run) and not carry(found, str(left.parent))
    assert answer(started(tmp_path, 2)) == str(run / "checkpoint-3")
    assert not (left.parent / "dlrover_latest.txt").exists()


def test_without_flash_checkpoints_nothing_is_looked_at(tmp_path: Path) -> None:
    saved(started(tmp_path, 0), 3)
    assert answer(started(tmp_path, 1), use_flash_ckpt=False) is None
    assert not SaveEngine._prepared


def test_another_release_of_ms_swift_is_told_of(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = sft.SwiftSft._get_resume_checkpoint
    ms_swift.install()
    assert sft.SwiftSft._get_resume_checkpoint is rule, "once"
    monkeypatch.setattr(ms_swift, "METHOD", "_chosen_otherwise")
    ms_swift.install()
    assert "it resumes by its own rule" in caplog.text
