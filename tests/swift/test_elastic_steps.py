"""Which step a run with `deepspeed_elastic` is resumed from, and what a failed conversion leaves: without a training, in one process."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from troupe.checkpoint.deepspeed import universal
from troupe.checkpoint.library import CheckpointError
from troupe.checkpoint.transformers import elastic

TERM = 7_000_000 * 4096  # of a master


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first workers of a job."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    started(monkeypatch, 1)


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was converted, by something quicker than DeepSpeed."""
    done = []

    def convert(_ranks: object, source: str, output: str, _what: str, device: str = "") -> None:
        Path(output, "zero").mkdir(parents=True)
        Path(output, "zero", "fp32.pt").write_text(Path(source, "shard.pt").read_text())
        done.append(source + device)

    monkeypatch.setattr(universal, "convert", convert)
    return done


def started(monkeypatch: pytest.MonkeyPatch, count: int, term: int = TERM) -> None:
    monkeypatch.setenv("TROUPE_GENERATION", str(term + count))


def saved(run: Path, step: int, max_steps: int = 100, generation: int = TERM + 1) -> Path:
    directory = run / f"checkpoint-{step}"
    (directory / f"global_step{step}").mkdir(parents=True)
    (directory / f"global_step{step}" / "shard.pt").write_text(f"shard of {step}")
    (directory / "latest").write_text(f"global_step{step}")
    (directory / "trainer_state.json").write_text(json.dumps({"max_steps": max_steps}))
    (directory / "troupe-manifest.json").write_text(json.dumps({"generation": generation}))
    (run / "dlrover_latest.txt").write_text(str(step))
    return directory


def resumed(run: Path, told: Path | None = None, otherwise: str | None = None) -> str | None:
    run.mkdir(exist_ok=True)
    args = SimpleNamespace(output_dir=str(run), resume_from_checkpoint=told and str(told))
    return elastic.resumed_from(args, lambda: otherwise)


def test_the_last_complete_step_of_the_run_before(tmp_path: Path, converted: list[str]) -> None:
    saved(tmp_path / "v0-a", 9)
    saved(tmp_path / "v1-b", 4)
    step = saved(tmp_path / "v1-b", 8)
    assert resumed(tmp_path / "v2-c") == str(step)
    assert converted == [str(step / "global_step8")]
    assert (step / "latest_universal").read_text() == "ucp"
    assert (step / "ucp" / "zero" / "fp32.pt").read_text() == "shard of 8"
    assert (tmp_path / "v1-b" / "ucp.txt").read_text() == "8"
    assert resumed(tmp_path / "v2-c") == str(step)
    assert len(converted) == 1, "it is there already"


def test_nothing_was_saved(tmp_path: Path, converted: list[str]) -> None:
    assert resumed(tmp_path / "v0-a") is None
    (tmp_path / "v0-a").mkdir(exist_ok=True)
    assert resumed(tmp_path / "v1-b", otherwise="what ms-swift says") == "what ms-swift says"
    assert resumed(tmp_path / "plain") is None
    assert not converted


def test_a_run_that_has_ended_is_not_resumed_but_by_its_own_job(
    tmp_path: Path, converted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = saved(tmp_path / "v0-a", 100)
    assert resumed(tmp_path / "v1-b") is None, "another job's"
    started(monkeypatch, 2, TERM + 4096)
    assert resumed(tmp_path / "v1-b") is None, "another job's, and these workers were started again"
    assert not converted
    started(monkeypatch, 2)
    assert resumed(tmp_path / "v1-b") == str(step), "this job's, whose workers were asked to end just then"


def test_a_path_is_begun_with_and_not_gone_back_to(tmp_path: Path, converted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = saved(tmp_path / "elsewhere", 50)
    assert resumed(tmp_path / "v0-a", told, str(told)) == str(told)
    started(monkeypatch, 2)
    assert resumed(tmp_path / "v1-b", told, str(told)) == str(told), "nothing was saved since"
    newer = saved(tmp_path / "v1-b", 60, generation=TERM + 2)
    started(monkeypatch, 3)
    assert resumed(tmp_path / "v2-c", told, str(told)) == str(newer)
    assert len(converted) == 2


def test_a_path_of_others_is_ms_swift_s(tmp_path: Path, converted: list[str]) -> None:
    (tmp_path / "foreign").mkdir()
    assert resumed(tmp_path / "v0-a", tmp_path / "foreign", "as it says") == "as it says"
    assert not converted


def test_a_failed_conversion_is_one_line_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_ranks: object, _source: str, output: str, what: str, _device: str) -> None:
        Path(output).mkdir(parents=True)
        raise CheckpointError(f"{what} cannot be converted for this world: no space is left")

    monkeypatch.setattr(universal, "convert", fails)
    step = saved(tmp_path / "v0-a", 8)
    before = sorted(path.relative_to(step) for path in step.rglob("*"))
    with caplog.at_level(logging.ERROR, "troupe.checkpoint"):
        assert resumed(tmp_path / "v1-b", otherwise="the step before") == "the step before"
    assert [record.getMessage() for record in caplog.records] == [
        f"{step} cannot be converted for this world: no space is left; there is no universal checkpoint of it, "
        "and training goes on from the step before"
    ]
    assert sorted(path.relative_to(step) for path in step.rglob("*")) == before


def test_what_a_killed_job_has_left_is_made_anew(tmp_path: Path, converted: list[str]) -> None:
    step = saved(tmp_path / "v0-a", 8)
    (step / ".troupe-universal" / "ucp").mkdir(parents=True)
    (step / "ucp").mkdir()
    assert resumed(tmp_path / "v1-b") == str(step)
    assert [path.name for path in (step / "ucp").iterdir()] == ["zero"]
    assert not (step / ".troupe-universal").exists()
    (step / "latest_universal").write_text("gone")
    assert resumed(tmp_path / "v1-b") == str(step)
    assert len(converted) == 2


def test_the_device_is_passed_on(tmp_path: Path, converted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROUPE_UCP_DEVICE_TYPE", "cuda")
    step = saved(tmp_path / "v0-a", 8)
    resumed(tmp_path / "v1-b")
    assert converted == [f"{step / 'global_step8'}cuda"]
