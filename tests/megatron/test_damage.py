"""Steps that are damaged, or are not what Megatron saves: rank, file and step are named, and nothing on the disk changes."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from few_ranks import Job
from frameworks import Start
from test_files import MEMORY, made, save_by_megatron

from troupe.checkpoint import megatron as ours

Damage = Callable[[Path], None]


def saves_by_megatron(rank: int, place: Path, fmt: str, tensor_parallel: int = 1) -> None:
    training = made(place, (fmt, tensor_parallel, False))
    for step in (1, 2):
        training.train(step)
        save_by_megatron(training, step)


def told_by_load(place: Path, fmt: str, tensor_parallel: int = 1, **more: Any) -> Any:
    training = made(place, (fmt, tensor_parallel, False), **more)
    try:
        return ours.load_checkpoint(*training.everything)
    except BaseException as error:  # Megatron ends the process for some of it
        return f"{type(error).__name__}: {error}"


def content_of(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


# ---- One rank ----


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def with_a_bit_turned(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def text(path: Path) -> None:
    path.write_text("this is no checkpoint\n" * 1000)


def of_others(path: Path) -> None:
    content = io.BytesIO()  # torch.save takes no name that begins with a dot
    torch.save({"weights": torch.ones(3000)}, content)
    path.write_bytes(content.getvalue())


def a_number(path: Path) -> None:
    torch.save(5, path)


def without(path: Path) -> None:
    path.unlink()


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_torch(path: Path) -> None:
    """The step gets a file of the format torch."""
    shutil.copytree(path.parents[2] / "others/iter_0000002/mp_rank_00", path.parent / "mp_rank_00")


def of_torch_dist(path: Path) -> None:
    """The step gets the files that say how those of torch_dist are read."""
    for name in ("metadata.json", ".metadata"):
        shutil.copy(path.parents[3] / "others/iter_0000002" / name, path.parents[1] / name)


WHOLE = [shortened, halved, emptied, text, of_others, a_number, without, a_fifo]
DAMAGES: dict[str, dict[str, list[Damage]]] = {
    "torch": {"mp_rank_00/model_optim_rng.pt": [*WHOLE, with_a_bit_turned, of_torch_dist]},
    "torch_dist": {
        "common.pt": [*WHOLE, of_torch],
        "__0_0.distcp": [shortened, halved, emptied, text, of_others, without, a_fifo, with_a_bit_turned],
        ".metadata": [shortened, halved, emptied, text, of_others, without],
        "metadata.json": [emptied, text, of_others, without],
    },
}


def loads_each_damage(rank: int, place: Path, fmt: str) -> dict[str, tuple[Any, bool]]:
    """What is said of each, and whether the place was left as it was."""
    told, whole = {}, place.with_name("whole")
    shutil.copytree(place, whole)
    for file, damages in DAMAGES[fmt].items():
        for damage in damages:
            damage(place / "iter_0000002" / file)
            before = content_of(place)
            what = told_by_load(place, fmt)
            told[f"{file} {damage.__name__}"] = what, before == content_of(place) and told_by_load(place, fmt, ckpt_step=1) == (1, 0)
            shutil.rmtree(place)
            shutil.copytree(whole, place)
    told["mended"] = told_by_load(place, fmt), True
    return told


@pytest.mark.parametrize("fmt", list(DAMAGES))
def test_whatever_a_file_is_instead_it_is_named_with_rank_and_step(tmp_path: Path, fmt: str):
    job, place = Job(tmp_path, [1]), tmp_path / "c"
    job.run(saves_by_megatron, place, fmt)
    job.run(saves_by_megatron, tmp_path / "others", "torch" if fmt == "torch_dist" else "torch_dist")
    [told] = job.run(loads_each_damage, place, fmt)
    job.close()
    assert told.pop("mended") == ((2, 0), True)
    for case, (what, unchanged) in told.items():
        print(f"{case}: {what}")
    step = place / "iter_0000002"
    for case, (what, unchanged) in told.items():
        file, _, damage = case.partition(" ")
        assert unchanged, case
        assert str(what).startswith(f"CheckpointError: rank 0: {step}"), case
        assert " of step 2: " in what and len(what.splitlines()) == 1, case
        if damage.startswith("of_torch"):
            assert "files of two formats, mp_rank_00/model_optim_rng.pt of torch and metadata.json of" in what, case
        else:
            assert str(step / file) in what, case


TRACKER = "latest_checkpointed_iteration.txt"


def loads_with_trackers(rank: int, place: Path, texts: list[bytes]) -> list[Any]:
    told = []
    for text in texts:
        (place / TRACKER).write_bytes(text)
        told.append(told_by_load(place, "torch"))
    (place / TRACKER).unlink()
    told.append(told_by_load(place, "torch"))
    told.append(told_by_load(place, "torch", exit_on_missing_checkpoint=True))
    return told


def test_a_tracker_that_names_no_step_is_named(tmp_path: Path):
    job, place = Job(tmp_path, [1]), tmp_path / "c"
    job.run(saves_by_megatron, place, "torch")
    [told] = job.run(loads_with_trackers, place, [b"two", b"", b"\xff\x00" * 500, b"9", b"2"])
    job.close()
    for one in told[:3]:
        assert one.startswith(f"CheckpointError: rank 0: {place / TRACKER}: ") and ("Invalid metadata file" in one or "utf-8" in one), one
    assert told[3].startswith(f"CheckpointError: rank 0: {place}/iter_0000009 of step 9: "), told[3]
    assert told[4:] == [(2, 0), (0, 0), "SystemExit: "]  # the last is what --exit-on-missing-checkpoint asks for


# ---- Several ranks ----


def loads_or_ends(rank: int, place: Path, fmt: str) -> Any:
    """The other rank waits for one that has nothing to go on with; that ends, as it would under a launcher."""
    told = told_by_load(place, fmt, 2)
    place.with_name(f"told-{rank}").write_text(str(told))
    if isinstance(told, str):
        os._exit(1)
    return told


@pytest.mark.parametrize(
    ("fmt", "file"), [("torch", "mp_rank_01/model_optim_rng.pt"), ("torch_dist", "__1_0.distcp")], ids=["torch", "torch_dist"]
)
def test_of_several_ranks_the_one_is_named_that_reads_the_damaged_file(tmp_path: Path, fmt: str, file: str):
    job, place = Job(tmp_path, [2]), tmp_path / "c"
    job.run(saves_by_megatron, place, fmt, 2)
    halved(place / "iter_0000002" / file)
    assert job.run(loads_or_ends, place, fmt) == [1, 1]
    job.close()
    assert (tmp_path / "told-1").read_text().startswith(f"CheckpointError: rank 1: {place}/iter_0000002/{file} of step 2: ")


# ---- Steps that Troupe has written ----


def ended(start: Start, place: Path, fmt: str, steps: int) -> list[dict]:
    """What the ranks have begun with that have trained to a step; each tenth is on the disk."""
    run = start([str(Path(__file__).with_name("training.py")), str(place), fmt, "2", "false", str(steps), "0"], procs=2)
    assert run.wait(300) == [0], run.err()[-4000:]
    return [json.loads((place / f"0-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize(
    ("fmt", "file", "damage"),
    [("torch", "mp_rank_01/model_optim_rng.pt", halved), ("torch_dist", "__1_0.distcp", with_a_bit_turned)],
    ids=["torch", "torch_dist"],
)
def test_of_steps_that_troupe_has_written_the_one_before_is_taken(
    start: Start, tmp_path: Path, fmt: str, file: str, damage: Damage
) -> None:
    ended(start, tmp_path, fmt, 20)
    checkpoints = tmp_path / "checkpoints"
    damage(checkpoints / "iter_0000020" / file)
    again = ended(start, tmp_path, fmt, 30)
    assert [one["resumed"] for one in again] == [10, 10]
    assert any("step 20" in line and file in line for line in again[0]["told"]), again[0]["told"]
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == "30"


# ---- In memory ----


def saves_a_state(rank: int, place: Path) -> None:
    from troupe.checkpoint import DdpCheckpointer

    with DdpCheckpointer(place) as other:
        assert other.save_checkpoint(9, {"x": torch.ones(3)}, storage_type=MEMORY)


def loads_alone(rank: int, place: Path, fmt: str) -> Any:
    return told_by_load(place, fmt)


def test_a_state_that_is_not_megatrons_is_named(tmp_path: Path):
    job = Job(tmp_path, [1])
    job.run(saves_a_state, tmp_path / "c")
    [told] = job.run(loads_alone, tmp_path / "c", "torch_dist")
    job.close()
    assert told.startswith("CheckpointError: rank 0: step 9") and "not saved by Megatron" in told, told


def saves_files_of_others(rank: int, place: Path, name: str) -> None:
    from troupe.checkpoint import File, Files
    from troupe.checkpoint.megatron.checkpointer import Options, of_job

    assert of_job(str(place), "", Options()).save_files(9, Files([File.of_state(name, {"weights": torch.ones(3)})]), MEMORY)


@pytest.mark.parametrize(
    ("name", "why"),
    [("mp_rank_00/model_optim_rng.pt", "unable to load iteration"), ("mp_rank_07/model_optim_rng.pt", "another tensor")],
    ids=["of others", "of another place"],
)
def test_files_in_memory_that_are_not_megatrons_do_not_end_the_process(tmp_path: Path, name: str, why: str):
    job = Job(tmp_path, [1])
    job.run(saves_files_of_others, tmp_path / "c", name)
    [told] = job.run(loads_alone, tmp_path / "c", "torch")
    job.close()
    assert told.startswith("CheckpointError: ") and "rank 0: " in told and "step 9" in told and why in told, told
