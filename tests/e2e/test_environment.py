"""Workers get the environment that torchrun documents; torchrun, run beside us, is the judge."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import Start
from launchers import TORCHRUN, Launcher, Run, base_environment, free_port, until

DUMP = """
import json, os, sys
seen = {"environment": dict(os.environ), "directory": os.getcwd()}
seen["leads its session"] = os.getsid(0) == os.getpid()
seen["unbuffered"] = sys.stdout.write_through
with open(f"{sys.argv[1]}/{os.environ['RANK']}.json", "w") as file:
    json.dump(seen, file)
"""

# Left to the launcher: an address that reaches rank 0 and a free port there.
STORE = {"MASTER_ADDR", "MASTER_PORT"}
# torchrun's own interpreter and agent leave these in what the workers inherit.
LEAKS_OF_TORCHRUN = {"LC_CTYPE", "TORCHELASTIC_SIGNALS_TO_HANDLE"}
OURS = {"TROUPE_GENERATION", "TROUPE_LAUNCHER", "TROUPE_CHECKPOINT_MEMORY", "TROUPE_CHECKPOINT_MEMORY_OF_NODE",
        "TROUPE_CHECKPOINT_MEMORY_OF_OTHERS", "TROUPE_COPIES_ADDRESS", "TROUPE_PROGRESS_FD", "TROUPE_CHANNEL",
        "TROUPE_KEEPER", "TROUPE_HOOKS",
        # The hooks; they take themselves out of it when torch is imported, which this script does not.
        "PYTHONPATH"}
# Checked for their meaning below, not for their value.
BY_MEANING = STORE | {"TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID", "TROUPE_RUN_TAG"}


def dumps(start: Start, tmp_path: Path, who: Launcher, **how: object) -> dict[int, dict]:
    """What each rank saw under the given launcher."""
    directory = Path(tempfile.mkdtemp(dir=tmp_path))
    script = tmp_path / "dump.py"
    script.write_text(DUMP)
    run: Run = start([str(script), str(directory)], launcher=who, **how)
    assert run.wait(60) == [0] * run.nodes, run.err()
    return {int(f.stem): json.loads(f.read_text()) for f in sorted(directory.glob("*.json"))}


def as_torchrun_gives(start: Start, tmp_path: Path, **how: object) -> dict[int, dict]:
    """What torchrun gives. Under load it now and then hangs at its start, so: three times."""
    for _ in range(2):
        with contextlib.suppress(TimeoutError):
            return dumps(start, tmp_path, TORCHRUN, **dict(how))
    return dumps(start, tmp_path, TORCHRUN, **dict(how))


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"procs": 1}, id="one worker"),
        pytest.param({"procs": 3, "restarts": 2}, id="one node"),
        pytest.param({"nodes": 2, "procs": 2}, id="two nodes"),
        pytest.param({"procs": 2, "environment": {"OMP_NUM_THREADS": "5"}}, id="threads chosen"),
        pytest.param(
            {"procs": 2, "environment": {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}}, id="nccl chosen"
        ),
        pytest.param(
            {"procs": 2, "environment": {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}},
            id="rank 0 hosts the store",
        ),
    ],
)
def test_workers_see_what_torchrun_gives_them(
    start: Start, tmp_path: Path, launcher: Launcher, how: dict
) -> None:
    theirs = as_torchrun_gives(start, tmp_path, **how)
    ours = dumps(start, tmp_path, launcher, **dict(how))
    assert ours.keys() == theirs.keys()
    for rank in theirs:
        mine, reference = ours[rank]["environment"], theirs[rank]["environment"]
        assert mine.keys() - reference.keys() - LEAKS_OF_TORCHRUN <= OURS
        assert reference.keys() - mine.keys() <= LEAKS_OF_TORCHRUN
        for name in reference.keys() & mine.keys() - BY_MEANING - LEAKS_OF_TORCHRUN:
            assert mine[name] == reference[name], f"rank {rank}: {name}"
        for other in ("directory", "leads its session", "unbuffered"):
            assert ours[rank][other] == theirs[rank][other], f"rank {rank}: {other}"


def test_what_differs_between_jobs_has_the_documented_meaning(
    start: Start, tmp_path: Path, launcher: Launcher
) -> None:
    seen = dumps(start, tmp_path, launcher, nodes=2, procs=2)
    environments = [seen[rank]["environment"] for rank in range(4)]
    assert (
        len({(e["MASTER_ADDR"], e["MASTER_PORT"], e["TORCHELASTIC_RUN_ID"]) for e in environments})
        == 1
    )
    assert 1024 <= int(environments[0]["MASTER_PORT"]) < 65536
    files = [Path(e["TORCHELASTIC_ERROR_FILE"]) for e in environments]
    assert len(set(files)) == 4
    for file, environment in zip(files, environments, strict=True):
        assert file.name == "error.json"
        assert file.parent.name == environment["LOCAL_RANK"]
        assert file.parent.parent.name == "attempt_0"


COUNTS = 'env | grep -E "^(RANK|ROLE_NAME|ROLE_RANK|ROLE_WORLD_SIZE|WORLD_SIZE)=" | sort > "$1/$GROUP_RANK"'


def test_workers_are_counted_per_role_as_torchrun_counts_them(
    shell: Start, tmp_path: Path, launcher: Launcher
) -> None:
    seen = {}
    for who in (TORCHRUN, launcher):
        directory = Path(tempfile.mkdtemp(dir=tmp_path))
        run = shell(COUNTS, directory, launcher=who, nodes=1, port=free_port(), options=["--nnodes=3"])
        for node, role in enumerate(("reader", "default"), start=1):
            run.options = ["--nnodes=3", f"--role={role}"]
            run.start_node(node)
        assert run.wait(60) == [0, 0, 0], run.err()
        seen[who] = sorted(file.read_text() for file in directory.iterdir())
    assert len(seen[TORCHRUN]) == 3
    assert [worker.split()[1:4] for worker in seen[launcher]] == [
        ["ROLE_NAME=default", "ROLE_RANK=0", "ROLE_WORLD_SIZE=2"],
        ["ROLE_NAME=reader", "ROLE_RANK=0", "ROLE_WORLD_SIZE=1"],
        ["ROLE_NAME=default", "ROLE_RANK=1", "ROLE_WORLD_SIZE=2"],
    ]
    # torchrun's nodes have the ranks in which they came; each role's counts are the same.
    roles = [sorted(tuple(worker.split()[1:4]) for worker in seen[who]) for who in seen]
    assert roles[0] == roles[1]


@pytest.mark.parametrize(
    ("nodes", "options"),
    [
        pytest.param(1, ["--rdzv-endpoint=localhost:{port}"], marks=pytest.mark.long),
        pytest.param(1, ["--master-addr=localhost", "--master-port={port}"], marks=pytest.mark.long),
        pytest.param(2, ["--rdzv-endpoint=localhost:{port}"], marks=pytest.mark.long),
        (2, ["--master-addr=localhost", "--master-port={port}"]),
        (2, ["--rdzv-backend=c10d", "--rdzv-id=job", "--rdzv-endpoint=localhost:{port}", "--local-addr=127.0.0.2"]),
    ],
)
def test_rank_0_is_found_at_the_host_that_torchrun_gives(
    tmp_path: Path, launcher: Launcher, nodes: int, options: list[str]
) -> None:
    script = tmp_path / "say.sh"
    script.write_text("#!/bin/sh\necho $MASTER_ADDR\n")
    script.chmod(0o755)
    seen = {}
    for who in (TORCHRUN, launcher):
        port = free_port()
        given = [option.format(port=port) for option in options]
        started = [
            subprocess.Popen(
                [who.program, f"--nnodes={nodes}", f"--node-rank={node}", *given, "--no-python", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=base_environment(),
                text=True,
            )
            for node in range(nodes)
        ]
        seen[who] = [process.communicate(timeout=60)[0] for process in started]
    assert seen[launcher] == seen[TORCHRUN]


def test_each_restart_is_counted_in_the_environment(shell: Start, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = 'echo "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS" >> "$1"; exit 5'
    run = shell(script, seen, restarts=2)
    assert run.wait(60) == [1]
    assert seen.read_text().split("\n") == ["0 2", "1 2", "2 2", ""]


def test_a_worker_on_another_node_sees_the_same_restart_count(shell: Start, tmp_path: Path) -> None:
    # torchrun counts per agent; with counts that differ, the ranks of a group miss each other.
    script = """
    echo "$TORCHELASTIC_RESTART_COUNT" >> "$1/$RANK"
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
    [ "$RANK" = 0 ] && exec sleep 600
    until [ -s "$1/0" ]; do sleep 0.02; done
    exit 5
    """
    run = shell(script, tmp_path, nodes=2, restarts=3)
    assert run.wait(60) == [0, 0], run.err()
    assert [(tmp_path / rank).read_text().split() for rank in "01"] == [["0", "1"], ["0", "1"]]


def test_workers_begin_with_no_signal_ignored_or_blocked(shell: Start, tmp_path: Path) -> None:
    # A launcher ignores and blocks some for itself; a worker that inherits that cannot be stopped.
    run = shell('grep -E "^Sig(Blk|Ign):" /proc/self/status > "$1/masks"', tmp_path)
    assert run.wait(60) == [0], run.err()
    masks = (tmp_path / "masks").read_text().split()
    assert [int(mask, 16) for mask in masks[1::2]] == [0, 0]


OPEN_FILES = """
import contextlib, json, os, sys
found = {}
for number in map(int, os.listdir("/proc/self/fd")):
    with contextlib.suppress(OSError):  # that of the listing itself
        found[number] = os.readlink(f"/proc/self/fd/{number}")
print(json.dumps(found), file=open(f"{sys.argv[1]}/{os.environ['RANK']}", "w"))
"""


def test_workers_inherit_their_memory_for_images_and_no_other_open_file(
    start: Start, tmp_path: Path
) -> None:
    script = tmp_path / "open_files.py"
    script.write_text(OPEN_FILES)
    run = start([str(script), str(tmp_path)], procs=2)
    assert run.wait(60) == [0], run.err()
    for rank in range(2):
        found = json.loads((tmp_path / str(rank)).read_text())
        beyond = sorted(what for number, what in found.items() if int(number) > 2)
        # A table and sixteen slots, of its own and of the node's first; the node's ledger, the page of
        # this rank's own progress, and the saver's wake-up event.
        owners = sorted({0, rank})
        names = [f"/memfd:troupe-ckpt-{owner}-{part} (deleted)" for owner in owners for part in range(17)]
        ledger = "/memfd:troupe-ckpt-ledger (deleted)"
        page = f"/memfd:troupe-progress-{rank} (deleted)"
        assert beyond == sorted([*names, ledger, page, "anon_inode:[eventfd]"])


def test_a_module_is_run_as_one(start: Start, tmp_path: Path) -> None:
    run = start(["platform"], options=["-m"])
    assert run.wait(60) == [0], run.err()
    assert "Linux" in run.out()


def test_the_local_rank_is_filled_in_in_arguments(shell: Start, tmp_path: Path) -> None:
    run = shell('echo "$2" > "$1/$RANK"', tmp_path, "gpu-${local_rank}-$x", procs=2)
    assert run.wait(60) == [0], run.err()
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["gpu-0-$x\n", "gpu-1-$x\n"]


FILLS_THE_STORE = """
import datetime, os, sys, time
import torch.distributed as dist
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(*where, is_master=False, timeout=datetime.timedelta(seconds=30))
for act in (lambda key: store.set(key, "x" * (4 << 20)), store.delete_key):
    for i in range(40):
        act(f"key {i}")
    open(sys.argv[1], "a").write("done\\n")
    while open(sys.argv[1]).read().count("go on") < open(sys.argv[1]).read().count("done"):
        time.sleep(0.02)
"""


def test_the_store_gives_memory_back_when_what_it_held_is_deleted(start: Start, tmp_path: Path) -> None:
    script, steps = tmp_path / "fill.py", tmp_path / "steps"
    script.write_text(FILLS_THE_STORE)
    run = start([str(script), str(steps)])

    def held() -> int:
        """By the store, in MiB."""
        lines = Path(f"/proc/{run.part('troupe-store')}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) // 1024

    def after(step: int) -> int:
        until(lambda: steps.exists() and steps.read_text().count("done") == step, 60, run.err())
        megabytes = held()
        with steps.open("a") as file:
            file.write("go on\n")
        return megabytes

    assert after(1) > 100
    assert after(2) < 20
    assert run.wait(60) == [0], run.err()


def said(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command, env=base_environment() | environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("processes", ["auto", "cpu"])
def test_workers_are_counted_by_the_cpus_that_the_launcher_may_use(
    launcher: Launcher, processes: str
) -> None:
    """As torchrun counts them; a GPU here would make `auto` another number."""
    if processes == "auto" and Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    cpu = str(min(os.sched_getaffinity(0)))
    shell = ["--no-python", "sh", "-c", "echo $WORLD_SIZE"]
    command = [launcher.program, "--standalone", f"--nproc-per-node={processes}", *shell]
    assert said(["taskset", "-c", cpu, *command]) == "1\n"


@pytest.mark.parametrize("name", ["torchrun", "dlrover-run"])
def test_tools_find_the_launcher_by_the_name_they_know(
    launcher: Launcher, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to(shutil.which(launcher.program))
    assert said([str(tmp_path / name), "--no-python", "echo", "it runs"]) == "it runs\n"


def test_libraries_of_the_same_names_elsewhere_are_not_taken(
    launcher: Launcher, tmp_path: Path
) -> None:
    for library in ("libfmt.so.9", "libssl.so.3", "libcaf_core.so.0.17.6", "libz.so.1"):
        (tmp_path / library).touch()
    said([launcher.program, "--version"], LD_LIBRARY_PATH=str(tmp_path))
