"""Two nodes, of which one is lost with its memory."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from conftest import Start
from killing import WITHIN
from launchers import Run, children, until
from sft import SCRIPT, arguments, require_same_end, resumed, runs, tracked


def lose(run: Run, node: int) -> None:
    """The launcher and all its processes, its workers among them."""
    of_node, at = [run.launchers[node].pid], 0
    os.kill(of_node[0], signal.SIGSTOP)
    while at < len(of_node):
        of_node += children(of_node[at])
        at += 1
    for pid in of_node:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    run.launchers[node].wait()


def test_a_lost_node_costs_what_was_not_complete(start: Start, data: Path, tmp_path: Path) -> None:
    more = {"lr_scheduler_type": "cosine"}
    alone = start([SCRIPT, *arguments(data, tmp_path / "alone", 60, 4, **more)], procs=2)
    assert alone.wait(WITHIN) == [0], alone.err()[-4000:]
    output = tmp_path / "out"
    command = [SCRIPT, *arguments(data, output, 60, 4, **more)]
    run = start(command, nodes=2, procs=1, restarts=3)
    until(lambda: runs(output) and (tracked(runs(output)[0]) or 0) >= 8, WITHIN, "some steps")
    lose(run, 1)
    run.launchers[1] = run.start_node(1)
    run.launchers.pop()
    assert run.wait(WITHIN) == [0, 0], run.err(0)[-4000:] + run.err(1)[-4000:]
    [(version, step)] = resumed(run.out() + run.err())
    assert version == 0 and step >= 8
    first, second = runs(output)
    assert tracked(first) == step and tracked(second) == 60
    require_same_end(runs(tmp_path / "alone")[0] / "checkpoint-60", second / "checkpoint-60")
    assert run.leftovers() == []
