"""A debugger that follows processes reaches the workers: debugpy, spoken to as an editor does."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from dap import Session, adapter, attached
from launchers import PYTHON, TAG, Launcher, base_environment, end_tagged, processes_tagged, until

EXAMPLES = ROOT / "deploy/examples"
Message = dict[str, object]

SCRIPT = """\
import os, sys
def work():
    rank = os.environ["RANK"]
    print(f"rank {rank}: {sys.argv[1:]} {__name__} {os.environ['PYTHON_EXEC']}", flush=True)
work()
"""
FUNCTION = """\
import os, troupe
def work():
    return "rank " + os.environ["RANK"]
if __name__ == "__main__":
    config = troupe.LaunchConfig(1, 1, nproc_per_node=2, rdzv_endpoint="localhost:0")
    print("returned", troupe.launch(config, work)(), flush=True)
"""
LINE = 3  # of both


@pytest.fixture
def tag() -> Iterator[str]:
    made = uuid.uuid4().hex
    yield made
    end_tagged(made)


@pytest.fixture
def editor(launcher: Launcher) -> Iterator[Session]:
    environment = base_environment() | {
        "PYTHONPATH": str(ROOT / "python"),
        "TROUPE_BIN_DIR": str(Path(launcher.program).resolve().parent),
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # else it warns of CPython's frozen modules
    }
    del environment["PYTHON_EXEC"]
    with adapter(str(PYTHON), environment) as session:
        yield session


def configuration(file: Path, workspace: Path, tag: str) -> Message:
    """The one of launch.json, as an editor fills it in."""
    text = (EXAMPLES / "launch.json").read_text()
    for variable, value in (("${file}", file), ("${workspaceFolder}", workspace)):
        text = text.replace(variable, str(value))
    [found] = json.loads(text)["configurations"]
    here = {"console": "internalConsole", "cwd": str(workspace), "env": {TAG: tag}}
    return found | here  # there is no terminal


def both(editor: Session, breakpoints: dict[str, list[int]]) -> dict[int, Session]:
    """The two workers that the adapter tells of next, by process id."""
    told = [editor.event("debugpyAttach") for _ in range(2)]
    return {each["subProcessId"]: attached(each, breakpoints) for each in told}


def go_on(workers: dict[int, Session], file: Path, line: int) -> None:
    """Each of them stops at this line, and then at none any more."""
    for session in workers.values():
        thread, frame = session.stopped_at()
        assert (frame["source"]["path"], frame["line"]) == (str(file), line)
        session.call("setBreakpoints", source={"path": str(file)}, breakpoints=[])
        session.call("continue", threadId=thread)


def printed(editor: Session) -> str:
    """All that the job has written, once it has ended well."""
    code = editor.event("exited")["exitCode"]
    editor.event("terminated")
    assert code == 0, editor.output()
    return editor.output()


def test_launch_json_reaches_every_worker_and_those_that_are_started_again(
    editor: Session, tag: str, tmp_path: Path
) -> None:
    file = EXAMPLES / "ddp.py"
    lines = file.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "loss.backward()" in text)
    asked = configuration(file, tmp_path, tag)
    asked["args"].append("3")  # steps
    editor.begin("launch", asked, {})
    first = both(editor, {str(file): [line]})
    for session in first.values():
        session.stopped_at()
    os.kill(max(first), signal.SIGKILL)
    second = both(editor, {str(file): [line]})
    assert not first.keys() & second.keys()
    for pid in second:  # where other users could read the debugger's token
        assert b"token" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    go_on(second, file, line)
    said = printed(editor)
    assert "ends after step 3 with loss" in said and "with 1 restart" in said


@pytest.mark.parametrize("how", [[], ["-m"], ["--run-path"]], ids=["script", "module", "run path"])
def test_all_that_a_launcher_runs_by_python_is_followed(
    editor: Session, tag: str, tmp_path: Path, how: list[str]
) -> None:
    file = tmp_path / "job.py"
    file.write_text(SCRIPT)
    asked = configuration(file, tmp_path, tag)
    command = [*how, "job" if how == ["-m"] else str(file), "-x", "y"]
    asked["args"] = ["--standalone", "--nproc-per-node=2", *command]
    editor.begin("launch", asked, {})
    workers = both(editor, {str(file): [LINE]})
    go_on(workers, file, LINE)
    said = printed(editor)
    for rank in range(2):
        assert f"rank {rank}: ['-x', 'y'] __main__ {PYTHON}" in said


@pytest.mark.long
def test_functions_are_followed(editor: Session, tag: str, tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(FUNCTION)
    asked = configuration(file, tmp_path, tag) | {"program": str(file), "args": []}
    del asked["module"]
    editor.begin("launch", asked, {})
    go_on(both(editor, {str(file): [LINE]}), file, LINE)
    assert "returned {0: 'rank 0', 1: 'rank 1'}" in printed(editor)


def test_workers_are_left_alone_if_the_debugger_is_to_follow_no_process(
    editor: Session, tag: str, tmp_path: Path
) -> None:
    file = tmp_path / "job.py"
    file.write_text(SCRIPT)
    asked = configuration(file, tmp_path, tag) | {"subProcess": False}
    asked["args"] = ["--standalone", "--nproc-per-node=2", str(file)]
    editor.begin("launch", asked, {str(file): [LINE]})
    said = printed(editor)
    for rank in range(2):
        assert f"rank {rank}: [] __main__ {PYTHON}" in said


def test_stopping_the_debugger_ends_the_job(editor: Session, tag: str, tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(SCRIPT)
    asked = configuration(file, tmp_path, tag)
    asked["args"] = ["--standalone", "--nproc-per-node=2", str(file)]
    editor.begin("launch", asked, {})
    for session in both(editor, {str(file): [LINE]}).values():
        session.stopped_at()
    editor.ask("disconnect", terminateDebuggee=True)
    until(lambda: not list(processes_tagged(tag)), 30, "nothing left of the job")
