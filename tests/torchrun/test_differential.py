"""The same command line under torchrun and under ours: what workers see, files, console, summary, exit."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from launchers import end_tagged, free_port, until
from sides import Case, Side, play

SCRIPTS = Path(__file__).with_name("scripts")
PROBE = [str(SCRIPTS / "probe.py"), "."]
ALONE = [
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=localhost:0",
    "--rdzv-id=job",
    "--local-addr=localhost",
]
CALM = "--rdzv-conf=keep_alive_interval=60,keep_alive_max_attempt=1"
TWO = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:PORT", CALM, *ALONE[2:]]
LOGS = [*ALONE, "--log-dir=logs"]


def signalled(number: int, workers: int):
    """Signals the launcher when all workers have spoken."""

    def act(side: Side) -> None:
        until(lambda: len(list(side.directory.glob("*.json"))) == workers, 60, "the workers run")
        os.kill(side.pid, number)

    return act


CASES = {
    "one worker": Case(ALONE, PROBE),
    "three workers": Case([*ALONE, "--nproc-per-node=3", "--role=r", "--max-restarts=2"], PROBE),
    "two nodes": Case([*TWO, "--nproc-per-node=2"], PROBE, nodes=2),
    "nodes of several roles": Case(
        ["--nnodes=3", "--master-addr=localhost", "--master-port=PORT", *ALONE[2:]],
        PROBE,
        nodes=3,
        of_node=[
            ["--node-rank=0", "--role=trainer", "--nproc-per-node=2"],
            ["--node-rank=1", "--role=reader"],
            ["--node-rank=2", "--role=trainer"],
        ],
    ),
    "from the environment": Case(
        ALONE,
        PROBE,
        {
            "PET_NPROC_PER_NODE": "2",
            "PET_REDIRECTS": "1",
            "PET_LOG_DIR": "logs",
            "OMP_NUM_THREADS": "3",
        },
    ),
    "a module": Case([*ALONE, "-m"], ["probe", "."], {"PYTHONPATH": str(SCRIPTS)}),
    "a program and its standard input": Case([*ALONE, "--no-python"], ["cat"], stdin="hello\n"),
    "run path": Case([*ALONE, "--run-path", "--nproc-per-node=2"], PROBE),
    "redirect and tee by rank": Case(
        [*LOGS, "--nproc-per-node=3", "-t", "0:1", "-r", "1:3"], PROBE
    ),
    "only rank 1 on the console": Case(
        [*LOGS, "--nproc-per-node=2", "--local-ranks-filter=1", "--tee=3"], PROBE
    ),
    "words that are filtered": Case(
        [*LOGS, "--nproc-per-node=2", "--tee=3", "--duplicate-stdout-filters=pear,ünï"], PROBE
    ),
    "a prefix of one's own": Case(
        [*LOGS, "--nproc-per-node=2", "--tee=1"],
        [*PROBE, "", "${local_rank}", "$local_rank", "${rank}"],
        {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name} ${rank} ${local_rank} $x ${y}>"},
    ),
    "no files": Case([*ALONE, "--log-dir=/dev/null"], PROBE),
    "exit 7": Case(LOGS, [*PROBE, "exit", "7"]),
    "killed": Case(LOGS, [*PROBE, "kill", "9"]),
    "an exception": Case(
        [*LOGS, "--redirects=3"],
        [*PROBE, "raise", "of its own"],
        {"TORCHELASTIC_ERROR_FILE": "own.json"},
    ),
    "one fails, the others are ended": Case(
        [*LOGS, "--nproc-per-node=2"], [*PROBE, "rank", "1:", "exit", "9"]
    ),
    "restarts": Case([*LOGS, "--max-restarts=2", "--redirects=1"], [*PROBE, "exit", "5"]),
    "SIGTERM": Case(
        [*LOGS, "--nproc-per-node=2"],
        [*PROBE, "wait", "for ever"],
        act=signalled(signal.SIGTERM, 2),
    ),
    "SIGUSR1 on request": Case(
        [*LOGS, "--signals-to-handle=SIGUSR1"],
        [*PROBE, "wait", "for ever"],
        act=signalled(signal.SIGUSR1, 1),
    ),
    "virtual local ranks": Case(
        [*ALONE, "--virtual-local-rank", "--nproc-per-node=2"],
        PROBE,
        {"CUDA_VISIBLE_DEVICES": "5,7"},
    ),
    "a script that is not there": Case(ALONE, ["nowhere.py"]),
    "a program that cannot be run": Case([*ALONE, "--no-python"], [str(SCRIPTS / "probe.py")]),
    "three fields of nodes": Case(["--nnodes=2:20:30"], PROBE),
    "no workers": Case([*ALONE, "--nproc-per-node=0"], PROBE),
    "an unknown number of workers": Case([*ALONE, "--nproc-per-node=many"], PROBE),
    "an unknown option": Case(["--no-such-option"], PROBE),
    "no script": Case(ALONE, []),
}


def torchruns(case: Case, tmp_path: Path, tag: str) -> dict[str, Any]:
    """What came of it under torchrun. Under load that now and then hangs at its start, so: three times."""
    for attempt in ("first", "second"):
        with contextlib.suppress(TimeoutError):
            return play(None, case, tmp_path / f"theirs-{attempt}", free_port(), tag, within=60)
        end_tagged(tag)
    return play(None, case, tmp_path / "theirs", free_port(), tag)


@pytest.mark.parametrize("name", CASES)
def test_same_as_torchrun(launcher: Path, tmp_path: Path, tag: str, name: str) -> None:
    case = CASES[name]
    theirs = torchruns(case, tmp_path, tag)
    mine = play(launcher, case, tmp_path / "ours", free_port(), tag)
    if name in OTHER_EXIT_CODES:
        codes = mine.pop("exit"), theirs.pop("exit")
        assert codes == ([OTHER_EXIT_CODES[name]], [1])
    assert without_deviations(mine, name) == without_deviations(theirs, name)


OTHER_EXIT_CODES = {
    "SIGTERM": 128 + signal.SIGTERM,  # exit-code-of-a-signal
    "a script that is not there": 2,  # one-code-for-usage
    "a program that cannot be run": 2,
    "three fields of nodes": 2,
    "no workers": 2,
    "an unknown number of workers": 2,
}


OTHER_SUMMARIES = {
    "one fails, the others are ended",  # ranks that the launcher ended did not fail
    "SIGUSR1 on request",  # signals-that-do-not-end
    "a script that is not there",  # missing-script
}


def without_deviations(seen: dict[str, Any], name: str) -> dict[str, Any]:
    """Names in the comments are those of docs/deviations.md; what the normal forms hide is there, too."""
    for worker in seen["workers"].values():
        worker["environment"].pop("TROUPE_GENERATION", None)  # generation-variable
        worker["environment"].pop("TROUPE_FAILED_AT", None)  # failed-at-variable
        worker["environment"].pop("TROUPE_LAUNCHER", None)  # launcher-variable
        worker["environment"].pop("TROUPE_CHECKPOINT_MEMORY", None)  # memory-variable
        worker["environment"].pop("TROUPE_CHECKPOINT_MEMORY_OF_NODE", None)
        worker["environment"].pop("TROUPE_CHECKPOINT_MEMORY_OF_OTHERS", None)
        worker["environment"].pop("TROUPE_COPIES_ADDRESS", None)
        for of_progress in ("TROUPE_PROGRESS_FD", "TROUPE_CHANNEL", "TROUPE_KEEPER", "TROUPE_HOOKS"):
            worker["environment"].pop(of_progress, None)  # progress-variables
        path = worker["environment"].pop("PYTHONPATH", "").split(os.pathsep)
        if users := [each for each in path if each and not each.endswith("libexec/troupe/hooks")]:
            worker["environment"]["PYTHONPATH"] = os.pathsep.join(users)
        if name == "run path":
            worker.pop("leads session and group")  # sessions-of-run-path
            worker.pop("unbuffered")  # unbuffered-run-path
    if name in OTHER_SUMMARIES:
        seen.pop("summary")
    return seen
