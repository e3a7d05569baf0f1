"""Steps of several files at each rank: in memory, at other nodes, on the disk, at a breakpoint, and for another world."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import torch
from conftest import Start
from launchers import ROOT, Run, free_port, until

PACKAGE = {"PYTHONPATH": str(ROOT / "python")}
WITHIN = 120

# What a rank has at a step is a function of both. It says what it has found, and then saves as it is told.
TRAINS = """
import io, json, logging, os, re, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from troupe.checkpoint import DdpCheckpointer, File, Files, KeepLatestStep, Part, StorageType

place, how = Path(sys.argv[1]), json.loads(sys.argv[2])
rank, generation = int(os.environ["RANK"]), int(os.environ["TROUPE_GENERATION"]) % 4096  # its count
told = []
logging.getLogger("troupe.checkpoint").setLevel(logging.INFO)
logging.getLogger("troupe.checkpoint").addHandler(type("Told", (logging.Handler,), {"emit": lambda _, r: told.append(r.getMessage())})())
dist.init_process_group("gloo")
world = dist.get_world_size()

def tensor(of, step):
    return torch.rand(30_000, generator=torch.Generator().manual_seed(1000 * step + of))

def files(step):
    if rank == how["without"]:
        return Files([])
    state = File.of_state("__%d_0.distcp" % rank, tensor(rank, step))
    plain = File(f"rank_{rank}/plain.bin", [Part(b"head", [tensor(rank, step + 1).untyped_storage()])])
    return Files([state, plain, File.of_bytes(f"note_{rank}", b"step %d" % step)])

def right(name, content, step):
    of = int(re.search(r"\\d+", name)[0])
    if name.startswith("note"):
        return content == b"step %d" % step
    if "plain" in name:
        return content == b"head" + tensor(of, step + 1).numpy().tobytes()
    return torch.equal(torch.load(io.BytesIO(content)), tensor(of, step))

def say(name, what):
    (place / f"{name}-{rank}.part").write_text(json.dumps(what))
    (place / f"{name}-{rank}.part").rename(place / f"{name}-{rank}.json")

ckpt = place / "checkpoints"
checkpointer = DdpCheckpointer(
    ckpt, local_shard_num=8, global_shard_num=world, deletion_strategy=KeepLatestStep(2, ckpt), **how["options"]
)
found = checkpointer.load_files()
step = 0
if found:
    step = found.step
    contents = {name: bytes(memory) for name, memory in found.files.items()}
    if found.directory:
        there = [p for p in Path(found.directory).rglob("*") if p.is_file() and not p.name.startswith((".", "troupe-"))]
        contents = {str(p.relative_to(found.directory)): p.read_bytes() for p in there}
    wrong = [name for name, content in contents.items() if not right(name, content, step)]
    said = {"step": step, "of": found.world_size, "names": sorted(contents), "disk": bool(found.directory), "wrong": wrong, "told": told}
    say(f"found{generation}", said)
for step in range(step + 1, step + 1 + how["steps"]):
    disk = how["disk"] and step % how["disk"] == 0
    assert checkpointer.save_files(step, files(step), StorageType.DISK if disk else StorageType.MEMORY), told
if "replica_count" in how["options"]:
    assert checkpointer.wait_latest_copies(60) == step, told
if how["disk"]:
    assert checkpointer.wait_latest_checkpoint(60), told
say(f"saved{generation}", step)
while not (place / "finish").exists():
    time.sleep(0.02)
os._exit(0)
"""


def job(start: Start, place: Path, how: dict, **more: object) -> Run:
    script = place / "train.py"
    script.write_text(TRAINS)
    how = {"options": {}, "steps": 3, "disk": 0, "without": None} | how
    return start([str(script), str(place), json.dumps(how)], environment=PACKAGE, **more)


def said(place: Path, name: str, ranks: int, run: Run, least: int = 1) -> list:
    """By the newest generation, of this number or later, that has said it at all ranks."""

    def newest() -> list | None:
        by_generation: dict[str, int] = {}
        for file in place.glob(f"{name}*-*.json"):
            generation = file.name[len(name) :].split("-")[0]
            by_generation[generation] = by_generation.get(generation, 0) + 1
        whole = [g for g, count in by_generation.items() if count >= ranks and int(g) >= least]
        if not whole:
            return None
        last = max(whole, key=int)
        return [json.loads((place / f"{name}{last}-{rank}.json").read_text()) for rank in range(ranks)]

    try:
        return until(newest, WITHIN, name)
    except BaseException:
        print(*(run.err(node) + run.out(node) for node in range(len(run.launchers))), sep="\n")
        raise


def names(rank: int) -> list[str]:
    return [f"__{rank}_0.distcp", f"note_{rank}", f"rank_{rank}/plain.bin"]


def kill_worker(run: Run) -> None:
    workers = [pid for pid in run.leftovers() if "train.py" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(workers[-1], signal.SIGKILL)


def finish(place: Path, run: Run) -> None:
    (place / "finish").touch()
    run.wait(WITHIN)


def test_a_killed_worker_finds_its_files_in_memory_and_the_disk_has_all(start: Start, tmp_path: Path) -> None:
    run = job(start, tmp_path, {"disk": 2, "without": 2}, procs=3, restarts=1)
    assert said(tmp_path, "saved", 3, run) == [3, 3, 3]
    kill_worker(run)
    for rank, found in enumerate(said(tmp_path, "found", 3, run)):
        assert (found["step"], found["names"], found["wrong"]) == (3, names(rank) if rank < 2 else [], [])
        assert any("comes from memory" in line for line in found["told"])
    assert said(tmp_path, "saved", 3, run)
    until(lambda: (tmp_path / "checkpoints/6/troupe-manifest.json").exists(), WITHIN, "step 6")
    finish(tmp_path, run)
    assert (tmp_path / "checkpoints/6/troupe-files-00002").is_file()  # of a rank without files
    for rank in range(2):
        for name in names(rank):
            assert (tmp_path / "checkpoints/6" / name).is_file()
    assert torch.equal(
        torch.load(tmp_path / "checkpoints/6/__1_0.distcp", weights_only=True),
        torch.rand(30_000, generator=torch.Generator().manual_seed(6001)),
    )


def test_a_lost_node_s_files_come_from_the_other_node(start: Start, tmp_path: Path) -> None:
    run = job(start, tmp_path, {"options": {"replica_count": 2}}, nodes=2, restarts=3)
    assert said(tmp_path, "saved", 2, run) == [3, 3]
    os.kill(run.launchers[1].pid, signal.SIGKILL)
    run.launchers[1].wait()
    run.launchers[1] = run.start_node(1)
    run.launchers.pop()
    found = said(tmp_path, "found", 2, run)
    assert [(one["step"], one["names"], one["wrong"]) for one in found] == [(3, names(rank), []) for rank in range(2)]
    assert any("comes from pieces" in line for line in found[1]["told"])
    finish(tmp_path, run)


def test_the_last_step_in_memory_is_written_when_the_user_ends_the_job(start: Start, tmp_path: Path) -> None:
    run = job(start, tmp_path, {"without": 0}, procs=3)
    assert said(tmp_path, "saved", 3, run) == [3, 3, 3]
    assert not (tmp_path / "checkpoints/3").exists()
    run.launchers[0].send_signal(signal.SIGINT)
    run.wait(WITHIN)
    written = {str(p.relative_to(tmp_path / "checkpoints/3")) for p in (tmp_path / "checkpoints/3").rglob("*") if p.is_file()}
    lists = {f"troupe-files-0000{rank}" for rank in range(3)}
    assert written == {*names(1), *names(2), *lists, "troupe-manifest.json"}


def test_a_larger_world_finds_the_files_in_memory_and_a_smaller_one_on_the_disk(start: Start, tmp_path: Path) -> None:
    elastic = {"port": free_port(), "ranked": False, "options": ["--nnodes=1:3"], "restarts": 0}
    run = job(start, tmp_path, {"disk": 3}, **elastic)
    said(tmp_path, "saved", 1, run)
    run.start_node(1)
    found = said(tmp_path, "found", 2, run)
    # One shard is the same for all: each rank has it from the one that had it.
    assert {one["of"] for one in found} == {1}
    assert [name for one in found for name in one["names"]] == names(0)
    assert not any(one["disk"] or one["wrong"] for one in found)
    said(tmp_path, "saved", 2, run)
    run.start_node(2)
    found = said(tmp_path, "found", 3, run)
    assert {one["of"] for one in found} == {2}
    assert sorted(name for one in found for name in one["names"]) == sorted([*names(0), *names(1)])
    assert not any(one["disk"] or one["wrong"] for one in found)
    said(tmp_path, "saved", 3, run)
    run.launchers[2].kill()  # and rank 2's files in memory with it
    found = said(tmp_path, "found", 2, run, least=4)
    assert {(one["of"], one["disk"]) for one in found} == {(3, True)}
    assert found[0]["names"] == sorted([*names(0), *names(1), *names(2)])
    assert not any(one["wrong"] for one in found)
    finish(tmp_path, run)
