"""`actor-shell scale`: other sizes while the job runs, by real launchers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Start
from launchers import Launcher, Run, children, free_port, until

WITHIN = 60.0
MEASURED_AFTER = 60.0  # a world's speed is taken of 20 s, and not of the first ones
WORKER = """
echo "$RANK/$WORLD_SIZE" >> "$1/worlds"
until [ -e "$1/finish" ]; do sleep 0.02; done
"""


def worlds(directory: Path, size: int) -> int:
    """How many workers have been started in worlds of this size."""
    file = directory / "worlds"
    return sum(line.endswith(f"/{size}") for line in file.read_text().splitlines()) if file.exists() else 0


def scale(launcher: Launcher, run: Run, *sizes: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [Path(launcher.program).with_name("actor-shell"), "scale", *sizes, f"--master=127.0.0.1:{run.port}"],
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )


def begun(shell: Start, directory: Path, nodes: int, sizes: str, *options: str) -> Run:
    """One worker on each of so many nodes."""
    run = shell(WORKER, directory, port=free_port(), procs=1, options=[f"--nnodes={sizes}", *options])
    until(lambda: "this node runs the job's master" in run.err(), WITHIN, "the first node has the master")
    for node in range(1, nodes):
        run.start_node(node)
    return run


def finished(run: Run, directory: Path) -> None:
    (directory / "finish").touch()
    assert set(run.wait(WITHIN)) == {0}, run.err()


def test_a_job_shrinks_and_grows_as_it_is_told(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, 3, "3:3")
    until(lambda: worlds(tmp_path, 3) == 3, WITHIN, f"the first world\n{run.err()}")
    smaller = scale(launcher, run, "1:2")
    assert smaller.returncode == 0, smaller.stderr
    assert smaller.stdout == (
        "the job is one of 1 to 2 nodes now; its 3 nodes start again as fewer, and the others stand by\n"
    )
    until(lambda: worlds(tmp_path, 2) == 2, WITHIN, f"the smaller world\n{run.err()}")
    larger = scale(launcher, run, "3")
    assert larger.stdout == "the job is one of 3 nodes now; 2 nodes run workers, 3 nodes here\n"
    until(lambda: worlds(tmp_path, 3) == 6, WITHIN, f"the larger world\n{run.err()}")
    assert "the job is scaled from 3 nodes to 1 to 2 nodes" in run.err()
    assert scale(launcher, run, "3").stdout == "the job is one of 3 nodes already\n"
    finished(run, tmp_path)


def test_a_job_that_waits_goes_on_with_fewer(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, 2, "3:3")
    until(lambda: "node node-1 joined (2 of 3)" in run.err(), WITHIN, f"both are here\n{run.err()}")
    assert worlds(tmp_path, 2) == 0
    assert scale(launcher, run, "2:3").returncode == 0
    until(lambda: worlds(tmp_path, 2) == 2, WITHIN, f"the world of two\n{run.err()}")
    finished(run, tmp_path)


def test_a_later_master_goes_by_it(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, 2, "2:2")
    until(lambda: worlds(tmp_path, 2) == 2, WITHIN, f"the first world\n{run.err()}")
    assert scale(launcher, run, "1:2").returncode == 0
    [master] = [pid for pid, name in children(run.launchers[0].pid).items() if name == "troupe-node"]
    os.kill(master, signal.SIGKILL)
    until(lambda: "the node supervisor crashed and was restarted" in run.err(), WITHIN, "the next master")
    run.launchers[1].kill()
    until(lambda: worlds(tmp_path, 1) == 1, WITHIN, f"a world of one node\n{run.err()}")
    (tmp_path / "finish").touch()
    assert run.launchers[0].wait(WITHIN) == 0, run.err()


def test_what_is_refused_says_why(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, 4, "4:4", "--node_unit=4")
    until(lambda: worlds(tmp_path, 4) == 4, WITHIN, f"the first world\n{run.err()}")
    refused = scale(launcher, run, "1:3")
    assert refused.returncode == 1
    assert refused.stderr == (
        "actor-shell: not scaled: no world is possible with 1 to 3 nodes (--node_unit, --elasticity-config)\n"
    )
    finished(run, tmp_path)
    assert worlds(tmp_path, 4) == 4


def test_without_a_master_it_is_said(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    run = shell("true", port=free_port())
    assert run.wait(WITHIN) == [0]
    asked = scale(launcher, run, "2")
    assert asked.returncode == 1
    assert f"it is not known whether the master at 127.0.0.1:{run.port} has taken it" in asked.stderr


TRAINS = """
import os, sys, time
from pathlib import Path
import torch, torch.distributed as dist

place, world = Path(sys.argv[1]), int(os.environ["WORLD_SIZE"])
with (place / "worlds").open("a") as worlds:
    worlds.write(f"{os.environ['RANK']}/{world}\\n")
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while not (place / "finish").exists():
    time.sleep(0.02 if world < 3 else 0.2)  # as where the network between many is slow
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
os._exit(0)
"""


@pytest.mark.long
def test_a_larger_world_that_trains_slower_is_told_and_undone(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    options = ["--nnodes=2:3", "--undo-worse-scaling"]
    run = start([str(script), str(tmp_path)], port=free_port(), ranked=False, procs=1, restarts=0, options=options)
    until(lambda: "this node runs the job's master" in run.err(), WITHIN, "the first node has the master")
    run.start_node(1)
    until(lambda: worlds(tmp_path, 2) == 2, WITHIN, f"the first world\n{run.err()}")
    time.sleep(MEASURED_AFTER)
    run.start_node(2)
    until(lambda: worlds(tmp_path, 3) == 3, WITHIN, f"the larger world\n{run.err()}")
    until(lambda: worlds(tmp_path, 2) == 4, 4 * WITHIN, f"the smaller world again\n{run.err()}")
    assert "the larger world does less as a whole" in run.err()
    finished(run, tmp_path)
