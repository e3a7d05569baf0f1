"""Before a planned change of the world workers are asked to save and end: `--elastic-mode ucp`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from conftest import Start
from launchers import Run, children, free_port, until

WITHIN = 60.0  # processes are started on a busy machine

# As a training program that knows how to end: the signal at any rank has all ranks save at the end of their step, and exit with 0.
WORKER = """
asked=$1/asked-$TROUPE_GENERATION
trap 'echo $RANK >> "$asked"' USR1
echo "$RANK/$WORLD_SIZE" >> "$1/worlds"
while [ ! -e "$1/finish" ]; do
  if [ -e "$asked" ] && [ ! -e "$1/slow" ]; then echo "$TROUPE_GENERATION $RANK" >> "$1/saved"; exit ${2:-0}; fi
  sleep 0.02
done
"""


def lines(directory: Path, name: str) -> list[str]:
    file = directory / name
    return file.read_text().splitlines() if file.exists() else []


def worlds(directory: Path, size: int) -> int:
    """How many workers have been started in worlds of this size."""
    return sum(line.endswith(f"/{size}") for line in lines(directory, "worlds"))


def asked(directory: Path) -> list[str]:
    """The ranks that were signalled."""
    return sorted(rank for file in directory.glob("asked-*") for rank in file.read_text().split())


def begun(start: Start, directory: Path, options: list[str], nodes: int = 1, most: int = 2, **more: object) -> Run:
    """Two workers on each of so many nodes, all of which have a handler by now."""
    options = [f"--nnodes={nodes}:{most}", "--elastic-mode=ucp", f"--stop-file={directory / 'stop'}", *options]
    run = start(more.pop("worker", WORKER), directory, port=free_port(), ranked=False, procs=2, options=options, **more)
    until(lambda: "this node runs the job's master" in run.err(), WITHIN, "the first node has the master")
    for node in range(1, nodes):
        run.start_node(node)
    until(lambda: worlds(directory, 2 * nodes) == 2 * nodes, WITHIN, f"the first world\n{run.err()}")
    # A world that is still starting has nothing to save: a node that leaves it does not wait.
    until(lambda: "all workers are started" in run.err(), WITHIN, f"the master knows of it\n{run.err()}")
    return run


def test_a_newcomer_comes_after_all_have_saved(shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, [], restarts=0)
    run.start_node(1)
    until(lambda: worlds(tmp_path, 4) == 4, WITHIN, f"the second world\n{run.err()}")
    assert len(lines(tmp_path, "saved")) == 2
    assert asked(tmp_path) == ["0"], "one worker of the node, and its process alone"
    assert "1 more node is here; the workers are asked to save and end" in run.err()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, 0], run.err()


def test_a_node_that_leaves_lets_all_save_first(shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, ["--nnodes=1:2", "--rdzv-conf=last_call_timeout=60"], nodes=2, restarts=0)
    run.launchers[1].send_signal(signal.SIGTERM)
    until(lambda: worlds(tmp_path, 2) == 2, WITHIN, f"the world of the node that stays\n{run.err()}")
    assert run.launchers[1].wait(WITHIN) != 0
    assert len(lines(tmp_path, "saved")) == 4, run.err()
    assert asked(tmp_path)
    assert "this node leaves, and its workers are asked to save" in run.err(1)
    (tmp_path / "finish").touch()
    assert run.launchers[0].wait(WITHIN) == 0, run.err()


@pytest.mark.parametrize("handler", ["", "trap '' USR1"])
def test_workers_without_a_handler_are_stopped_at_once_and_do_not_die_of_it(shell: Start, tmp_path: Path, handler: str) -> None:
    worker = WORKER.replace("trap 'echo $RANK >> \"$asked\"' USR1", handler)
    run = begun(shell, tmp_path, ["--graceful-save-within=3600", "--graceful-within=3600"], restarts=0, worker=worker)
    run.start_node(1)
    until(lambda: worlds(tmp_path, 4) == 4, WITHIN, f"the second world\n{run.err()}")
    assert not lines(tmp_path, "saved")
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, 0], run.err()


def test_workers_that_do_not_end_are_stopped_in_time(shell: Start, tmp_path: Path) -> None:
    (tmp_path / "slow").touch()
    run = begun(shell, tmp_path, ["--graceful-save-within=1"], restarts=0)
    run.start_node(1)
    until(lambda: worlds(tmp_path, 4) == 4, WITHIN, f"the second world\n{run.err()}")
    assert asked(tmp_path) == ["0"]
    assert "(--graceful-save-within): stopping them" in run.err()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, 0], run.err()


def test_a_worker_that_fails_when_it_is_asked_has_failed(shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, [], restarts=0, worker=WORKER.replace("${2:-0}", "3"))
    run.start_node(1)
    assert run.wait(WITHIN) == [1, 1], run.err()
    assert "exit code 3" in run.err()


def test_a_node_that_dies_meanwhile_is_not_waited_for(shell: Start, tmp_path: Path) -> None:
    (tmp_path / "slow").touch()
    options = ["--graceful-save-within=3600", "--graceful-within=3600"]
    run = begun(shell, tmp_path, options, nodes=2, most=3, restarts=0)
    run.start_node(2)
    until(lambda: len(asked(tmp_path)) == 2, WITHIN, f"a worker of each node is asked\n{run.err()}")
    run.launchers[1].kill()
    until(lambda: worlds(tmp_path, 4) == 8, WITHIN, f"the world without it, and with the newcomer\n{run.err()}")
    (tmp_path / "slow").unlink()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, -9, 0], run.err()


def test_exits_with_0_are_no_success_for_a_later_master_either(shell: Start, tmp_path: Path) -> None:
    (tmp_path / "slow").touch()
    options = ["--graceful-save-within=3600", "--graceful-within=3600"]
    run = begun(shell, tmp_path, options, nodes=2, most=3, restarts=0)
    run.start_node(2)
    until(lambda: len(asked(tmp_path)) == 2, WITHIN, f"a worker of each node is asked\n{run.err()}")
    [master] = [pid for pid, name in children(run.launchers[0].pid).items() if name == "troupe-node"]
    os.kill(master, signal.SIGKILL)
    (tmp_path / "slow").unlink()
    until(lambda: worlds(tmp_path, 6) == 6, WITHIN, f"the world with the newcomer\n{run.err()}")
    # The newcomer may find the new master later than the others do, which then save once more for it.
    saved = [line.split() for line in lines(tmp_path, "saved")]
    assert sorted(rank for generation, rank in saved if generation == saved[0][0]) == list("0123")
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0, 0, 0], run.err()


def test_a_stop_file_that_was_left_is_removed(shell: Start, tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    run = begun(shell, tmp_path, [])
    assert not (tmp_path / "stop").exists()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0], run.err()


def test_without_a_word_the_stop_file_is_the_run_s_own_and_none_is_left_for_the_next_workers(shell: Start) -> None:
    script = """
        case $TROUPE_STOP_FILE in /stop|/tmp/stop|"") exit 9;; esac
        test $TORCHELASTIC_RESTART_COUNT = 1 && { test ! -e $TROUPE_STOP_FILE; exit; }
        touch $TROUPE_STOP_FILE && exit 3
    """
    run = shell(script, options=["--elastic-mode=ucp"], restarts=1)
    assert run.wait(WITHIN) == [0], run.err()


def test_a_stop_file_that_cannot_be_removed_is_said(shell: Start, tmp_path: Path) -> None:
    (tmp_path / "stop").mkdir()
    run = shell("exit 0", options=["--elastic-mode=ucp", f"--stop-file={tmp_path / 'stop'}"])
    assert run.wait(WITHIN) == [1]
    assert f"--stop-file {tmp_path / 'stop'} is there and cannot be removed" in run.err()


def test_work_that_is_done_is_a_success_though_it_could_have_been_asked(shell: Start, tmp_path: Path) -> None:
    run = begun(shell, tmp_path, [])
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0], run.err()
    assert worlds(tmp_path, 2) == 2
