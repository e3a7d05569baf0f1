"""Checkpoints that other tools or people have written where a job saves: named, never touched, loaded when asked."""

from __future__ import annotations

import torch

from troupe.checkpoint import DdpCheckpointer, KeepLatestStep, complete_steps


def test_checkpoints_of_other_tools_are_named_and_stay_and_load_when_asked(tmp_path, caplog):
    (tmp_path / "5000").mkdir()
    torch.save({"step": 5000}, tmp_path / "5000/rank_0.pt")
    (tmp_path / "dlrover_latest.txt").write_text("5000")
    theirs = (tmp_path / "5000/rank_0.pt").read_bytes()
    keep = KeepLatestStep(1, tmp_path)
    with DdpCheckpointer(tmp_path, deletion_strategy=keep) as checkpointer:
        assert checkpointer.load_checkpoint() == {}
        assert f"{tmp_path}: dlrover_latest.txt names step 5000 in 5000" in caplog.text
        asked = checkpointer.load_checkpoint(str(tmp_path / "5000/rank_0.pt"))
        assert asked == {"step": 5000}
        assert checkpointer.save_checkpoint(5000, {"step": 1})
        assert not checkpointer.wait_latest_checkpoint(60)
        assert "step 5000 cannot be in '5000': it holds '5000/rank_0.pt'" in caplog.text
        for step in (1, 2):
            assert checkpointer.save_checkpoint(step, {"step": step})
            assert checkpointer.wait_latest_checkpoint(60)
    assert complete_steps(str(tmp_path)) == [2]
    assert (tmp_path / "5000/rank_0.pt").read_bytes() == theirs
    assert (tmp_path / "dlrover_latest.txt").read_text() == "5000"  # readers of it go on from there


def test_files_that_no_tracker_names_are_named_too(tmp_path, caplog):
    torch.save({"step": 7}, tmp_path / "model.pt")
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.load_checkpoint() == {}
    assert f"{tmp_path} holds model.pt, which Troupe has not written" in caplog.text


def test_a_step_that_a_job_has_left_unfinished_is_its_own(tmp_path, caplog):
    (tmp_path / ".troupe/steps").mkdir(parents=True)
    (tmp_path / "10").mkdir()
    (tmp_path / "10/rank_0.pt").write_text("half")
    (tmp_path / ".troupe/steps/10").write_text("10")
    with DdpCheckpointer(tmp_path) as checkpointer:
        assert checkpointer.load_checkpoint() == {}
    assert "has not written" not in caplog.text
