"""Snapshots of several files: in memory, at other ranks, on the disk, and as PyTorch reads them."""

from __future__ import annotations

import gc
import io
import os
from pathlib import Path

import pytest
import torch
from few_ranks import Job, said

from troupe.checkpoint import (
    Arena,
    CheckpointError,
    DdpCheckpointer,
    File,
    Files,
    Part,
    StorageType,
)
from troupe.checkpoint.contents import list_name

MEMORY, DISK = StorageType.MEMORY, StorageType.DISK


def storage(*numbers: float) -> torch.UntypedStorage:
    return torch.tensor(numbers, dtype=torch.float32).untyped_storage()


def some_files(value: float = 1.0) -> Files:
    archives = [Part.of_state({"w": torch.full((10,), value)}), Part.of_state(torch.tensor(value))]
    return Files(
        [
            File("__0_0.distcp", archives),
            File("plain.bin", [Part(b"head", [storage(value, 2.0), storage(3.0)]), Part(b"tail")]),
            File.of_state("deep/er/state.pt", {"step": value}),
            File("empty", []),
        ]
    )


def loaded(memory: memoryview) -> object:
    return torch.load(io.BytesIO(memory), weights_only=True)


def check(held, value: float = 1.0) -> None:
    assert list(held) == ["__0_0.distcp", "plain.bin", "deep/er/state.pt", "empty"]
    assert bytes(held["plain.bin"]) == b"head" + torch.tensor([value, 2.0, 3.0]).numpy().tobytes() + b"tail"
    assert loaded(held["deep/er/state.pt"]) == {"step": value}
    assert len(held["empty"]) == 0


def test_files_are_what_was_given_and_parts_where_they_are_said_to_be():
    files = some_files()
    with Arena() as arena:
        assert arena.save(3, files) is False
        image = arena.newest()
        arena.seal(image)
        held = arena.files(image)
        check(held)
        first, second = files.files[0].parts
        assert first.begin == 0 and second.begin % 64 == 0 and second.begin >= first.size
        whole = held["__0_0.distcp"]
        assert torch.equal(loaded(whole[: first.size])["w"], torch.full((10,), 1.0))
        assert loaded(whole[second.begin : second.begin + second.size]) == torch.tensor(1.0)
        assert len(whole) == second.begin + second.size


def test_tensors_of_held_files_are_the_images_memory_and_it_stays_theirs():
    with Arena() as arena:
        arena.save(1, Files([File("x", [Part(b"", [storage(*range(1000))])])]))
        held = arena.files(arena.newest())
        tensor = torch.frombuffer(held["x"], dtype=torch.float32)
        tensor[0] = 7.0  # this program's own page
        del held
        gc.collect()
        for step in range(2, 8):
            arena.save(step, Files([File("x", [Part(b"", [storage(*[float(step)] * 1000)])])]))
        assert tensor[0] == 7.0 and torch.equal(tensor[1:], torch.arange(1.0, 1000.0))


def test_an_image_of_one_file_has_no_list():
    with Arena() as arena:
        arena.save(1, {"a": torch.ones(3)})
        assert dict(arena.files(arena.newest())) == {}


def test_a_last_file_makes_the_image_whole():
    with Arena() as arena:
        files = some_files()
        files.last_file_room = 1000
        assert arena.save(1, files) is True
        assert arena.newest() is None
        arena.last_file(".metadata", b"where everything is")
        arena.wait()
        held = arena.files(arena.newest())
        assert bytes(held[".metadata"]) == b"where everything is"
        assert bytes(held["plain.bin"]).startswith(b"head")


def test_a_last_file_that_does_not_come_or_does_not_fit_costs_that_save_alone():
    with Arena() as arena:
        arena.save(1, some_files())
        files = some_files(2.0)
        files.last_file_room = 10
        arena.save(2, files)
        with pytest.raises(CheckpointError, match="'m' has 100000 bytes, for which there is no room"):
            arena.last_file("m", b"x" * 100_000)
        with pytest.raises(CheckpointError, match="has 100000 bytes"):
            arena.wait()
        assert arena.newest().step == 1
        arena.save(3, files)
        with pytest.raises(CheckpointError, match="its last file was never given"):
            arena.save(4, files)
        with pytest.raises(CheckpointError, match="has kept no room"):
            arena.last_file("m", b"")
        check(arena.files(arena.newest()))
        arena.save(5, some_files(5.0))
        check(arena.files(arena.newest()), 5.0)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../x", "is no name for a stored file"),
        ("/etc/x", "is no name for a stored file"),
        ("", "is no name for a stored file"),
        ("troupe-manifest.json", "cannot be the name of a step's file"),
        ("a", "'a' is there twice"),
    ],
)
def test_names_that_cannot_be_are_refused_and_what_was_saved_stays(name: str, why: str):
    with Arena() as arena:
        arena.save(1, some_files())
        with pytest.raises(CheckpointError, match=why):
            arena.save(2, Files([File("a", []), File(name, [])]))
        check(arena.files(arena.newest()))


def test_copy_on_write_keeps_files_as_they_were_at_the_call():
    big = torch.zeros(1 << 20)
    with Arena(copy_on_write=True) as arena:
        assert arena.save(1, Files([File("x", [Part(b"h", [big.untyped_storage()])])])) is True
        big.fill_(1.0)
        arena.wait()
        assert bytes(arena.files(arena.newest())["x"]) == b"h" + bytes(4 << 20)


# ---- Several ranks ----


def save_at(rank: int, place: Path, steps: list[int], storage_type: StorageType) -> list[bool]:
    with few(place) as checkpointer:
        kept = [checkpointer.save_files(step, of_rank(rank, step), storage_type) for step in steps]
        checkpointer.wait_latest_checkpoint(30)
        return kept


def few(place: Path, **more: object) -> DdpCheckpointer:
    return DdpCheckpointer(place, 8, int(os.environ["WORLD_SIZE"]), **more)


def of_rank(rank: int, step: int) -> Files:
    tensor = torch.full((1000,), float(100 * rank + step))
    files = [File.of_state(f"part_{rank}.pt", {"t": tensor}), File.of_bytes(f"r{rank}/note", b"%d" % step)]
    return Files(files)


def load_at(rank: int, place: Path) -> tuple[int, list[str], float] | None:
    with few(place) as checkpointer:
        found = checkpointer.load_files()
        if not found:
            return None
        value = loaded(found.files[f"part_{rank}.pt"])["t"]
        assert bool((value == value[0]).all())
        return found.step, [*found.files], float(value[0])


def test_all_ranks_keep_and_find_their_own_files_in_memory(tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    assert job.run(save_at, tmp_path / "c", [5, 6], MEMORY) == [[True, True]] * 3
    for rank, (step, names, value) in enumerate(job.run(load_at, tmp_path / "c")):
        assert (step, value) == (6, 100 * rank + 6)
        assert names == [f"part_{rank}.pt", f"r{rank}/note"]
    job.close()


def found_at(rank: int, place: Path) -> tuple[int, int, list[str], str] | None:
    with few(place) as checkpointer:
        if not (found := checkpointer.load_files()):
            return None
        return found.step, found.world_size, sorted(found.files), found.directory


def test_files_of_a_larger_world_are_found_each_at_the_rank_that_has_it(tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    job.run(save_at, tmp_path / "c", [5, 6], MEMORY)
    job.run(save_at, tmp_path / "c", [7], MEMORY)
    larger = Job(tmp_path / "l", [2, 2])  # a node more
    (tmp_path / "l").mkdir()
    larger.memory[0], larger.memory[1][0], larger.generation = job.memory[0], job.memory[1][0], 7
    names = [[f"part_{rank}.pt", f"r{rank}/note"] for rank in range(3)] + [[]]
    assert larger.run(found_at, tmp_path / "c") == [(7, 3, names[rank], "") for rank in range(4)]
    # Without one of its parts a state is nothing.
    larger.memory[1][0] = Arena()
    assert larger.run(found_at, tmp_path / "c") == [None] * 4
    job.close()


def save_of_some(rank: int, place: Path) -> bool:
    with few(place) as checkpointer:
        return checkpointer.save_files(7, of_rank(rank, 7) if rank == 1 else Files([]), MEMORY)


def test_a_rank_without_files_takes_part_in_the_step(tmp_path: Path):
    job = Job(tmp_path, [2, 1])
    assert job.run(save_of_some, tmp_path / "c") == [True] * 3
    names = [[], ["part_1.pt", "r1/note"], []]
    found = job.run(found_at, tmp_path / "c")
    assert [(step, files) for step, _, files, _ in found] == [(7, names[rank]) for rank in range(3)]
    job.close()


def same_name(rank: int, place: Path) -> list[object]:
    with few(place) as checkpointer:
        name = "mine" if rank == 0 else "ours"
        kept = checkpointer.save_files(1, Files([File.of_bytes(name, b"1")]), MEMORY)
        fine = checkpointer.save_files(2, Files([File.of_bytes(f"{rank}", b"2")]), MEMORY)
        return [kept, fine, said.lines]


def test_two_ranks_do_not_write_to_one_file(tmp_path: Path):
    job = Job(tmp_path, [3])
    for rank, (kept, fine, lines) in enumerate(job.run(same_name, tmp_path / "c")):
        assert (kept, fine) == (False, True)
        assert lines[0].startswith(f"rank {rank}: step 1 is not saved: rank 1: 'ours' is a file of rank 1 and of rank 2")
    job.close()


def save_alone(rank: int, place: Path) -> None:
    with DdpCheckpointer(place) as checkpointer:
        for step in (1, 2):
            assert checkpointer.save_files(step, some_files(float(step)), DISK)
        assert checkpointer.wait_latest_checkpoint(30)


def load_alone(rank: int, place: Path) -> int | None:
    with DdpCheckpointer(place) as checkpointer:
        found = checkpointer.load_files()
        if found:
            check(found.files, float(found.step))
        return found and found.step


def test_files_on_a_disk_are_pytorchs_and_come_back_from_there(tmp_path: Path):
    job, place = Job(tmp_path, [1], launched=False), tmp_path / "c"
    job.run(save_alone, place)
    names = {str(path.relative_to(place / "2")) for path in (place / "2").rglob("*") if path.is_file()}
    assert names == {
        *("__0_0.distcp", "plain.bin", "deep/er/state.pt", "empty"),
        *(list_name(0), "troupe-manifest.json"),
    }
    assert torch.load(place / "2/deep/er/state.pt") == {"step": 2.0}
    assert job.run(load_alone, place) == [2]
    # What is damaged is passed over, the step before it is taken.
    damaged = bytearray((place / "2/plain.bin").read_bytes())
    damaged[5] ^= 1
    (place / "2/plain.bin").write_bytes(damaged)
    assert job.run(load_alone, place) == [1]
    (place / "1/deep/er/state.pt").unlink()
    with pytest.raises(AssertionError, match=r"no step at .* can be read"):
        job.run(load_alone, place)
    job.close()


def test_a_list_has_the_name_of_its_shard():
    assert list_name(3) == "troupe-files-00003"
