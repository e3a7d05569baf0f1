"""Where workers' output goes: the console, files, prefixes, filters, error files, the summary."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Start
from launchers import PYTHON, Launcher, base_environment

TALK = 'echo "out $RANK"; echo "err $RANK" >&2'


def files_below(directory: Path) -> set[str]:
    """Workers' files, without the name of the run."""
    return {
        str(Path(*path.relative_to(directory).parts[1:]))
        for path in directory.rglob("*")
        if path.is_file() and "attempt_" in str(path)
    }


def said(run, stream: str, *wanted: str) -> list[str]:
    """The lines of a stream that workers wrote."""
    return sorted(line for line in getattr(run, stream)().splitlines() if re.search("|".join(wanted), line))


def test_each_worker_s_streams_go_where_the_user_wants_them(shell: Start, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    run = shell(TALK, procs=3, options=[f"--log-dir={logs}", "-t", "0:1", "-r", "1:3"])
    assert run.wait(60) == [0], run.err()
    assert said(run, "out", "out") == ["[default0]:out 0", "out 2"]
    assert said(run, "err", "err") == ["err 0", "err 2"]
    assert files_below(logs) == {
        "attempt_0/0/stdout.log",
        "attempt_0/1/stdout.log",
        "attempt_0/1/stderr.log",
    }


def test_a_filter_hides_ranks_and_leaves_files_alone(shell: Start, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    options = [f"--log-dir={logs}", "--local-ranks-filter=1", "--tee=3"]
    run = shell(TALK, procs=2, options=options)
    assert run.wait(60) == [0], run.err()
    assert said(run, "out", "out", "err") == ["[default1]:out 1"]
    assert said(run, "err", "out \\d", "err") == ["[default1]:err 1"]
    assert files_below(logs) == {f"attempt_0/{r}/std{s}.log" for r in (0, 1) for s in ("out", "err")}


def test_without_a_log_directory_there_are_no_files(shell: Start) -> None:
    script = 'echo "file=${TORCHELASTIC_ERROR_FILE-unset}"'
    run = shell(script, options=["--log-dir=/dev/null", "-r", "3", "-t", "3"])
    assert run.wait(60) == [0], run.err()
    assert said(run, "out", "file") == ["file="]


def test_prefixes_and_filtered_lines_are_the_user_s(shell: Start, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    options = [
        f"--log-dir={logs}",
        "--tee=1",
        "--role=trainer",
        "--log-line-prefix-template=<${role_name} ${rank}/${local_rank} $x>",
        "--duplicate-stdout-filters=loss,a,,b",
    ]
    run = shell("echo loss 1; echo lr; echo a,b", options=options)
    assert run.wait(60) == [0], run.err()
    prefix = "<trainer 0/0 $x>"
    assert run.out().splitlines() == [prefix + line for line in ("loss 1", "lr", "a,b")]
    (filtered,) = logs.glob("latest/attempt_0/filtered_stdout.log")
    assert filtered.read_text().splitlines() == [prefix + "loss 1", prefix + "a,b"]


def test_every_attempt_keeps_its_files(shell: Start, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    script = 'echo "attempt $TORCHELASTIC_RESTART_COUNT"; exit 3'
    run = shell(script, restarts=2, options=[f"--log-dir={logs}", "-r", "1"])
    assert run.wait(60) == [1]
    logged = [next(logs.glob(f"latest/attempt_{n}/0/stdout.log")).read_text() for n in range(3)]
    assert logged == [f"attempt {n}\n" for n in range(3)]


def test_what_was_teed_is_on_the_console_when_the_launcher_ends(
    shell: Start, tmp_path: Path
) -> None:
    # Much, from several workers at once, the last line unfinished, and then a failure.
    script = 'i=0; while [ $i -lt 20000 ]; do echo "rank $RANK line $i"; i=$((i+1)); done; printf end; exit 1'
    run = shell(script, procs=2, options=[f"--log-dir={tmp_path}/logs", "--tee=1"])
    assert run.wait(120) == [1]
    lines = run.out().splitlines()
    for rank in (0, 1):
        mine = [line for line in lines if line.startswith(f"[default{rank}]:")]
        whole = [f"[default{rank}]:rank {rank} line {i}" for i in range(20000)]
        # The other one may have been ended by the first one's failure.
        assert mine[: len(whole)] == whole[: len(mine)]
        assert len(mine) == 20001 or "SIGTERM" in run.err() or len(mine) < 20001
    assert any(line.endswith(":end") for line in lines)
    assert set(line.split(":")[0] for line in lines) <= {"[default0]", "[default1]"}


def full_pipe() -> tuple[int, int]:
    """That takes no byte more, and that nothing reads."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    for size in (65536, 1):
        with contextlib.suppress(BlockingIOError):
            while os.write(writes, b"x" * size):
                pass
    os.set_blocking(writes, True)
    return reads, writes


@pytest.mark.parametrize(
    ("script", "options", "code"),
    [
        pytest.param("exit 0", ["-v"], 0, id="story"),
        pytest.param("exit 3", ["--max-restarts=2"], 1, id="restarts and the summary", marks=pytest.mark.long),
        pytest.param("seq 10000; exit 3", ["--tee=3"], 1, id="tee", marks=pytest.mark.long),
        pytest.param("seq 100000 & exit 0", ["--shutdown-timeout=1"], 0, id="a worker's child that blocks", marks=pytest.mark.long),
    ],
)
def test_a_console_that_takes_nothing_does_not_keep_the_launcher_from_ending(
    launcher: Launcher, tmp_path: Path, script: str, options: list[str], code: int
) -> None:
    worker = tmp_path / "worker.sh"
    worker.write_text(f"#!/bin/sh\n{script}\n")
    worker.chmod(0o755)
    out, err, told = full_pipe(), full_pipe(), tmp_path / "log.json"
    done = subprocess.Popen(
        [launcher.program, "--standalone", f"--json-log={told}", *options, "--no-python", str(worker)],
        stdin=subprocess.DEVNULL,
        stdout=out[1],
        stderr=err[1],
        env=base_environment(),
    )
    try:
        assert done.wait(30) == code
        assert "the console takes nothing: up to" in told.read_text()
    finally:
        done.kill()
        for end in (*out, *err):
            os.close(end)


def test_what_a_failed_worker_wrote_last_is_told_without_any_option(shell: Start) -> None:
    run = shell("for i in $(seq 30); do echo line $i >&2; done; printf half >&2; exit 3")
    assert run.wait(60) == [1], run.err()
    lines = run.err().splitlines()
    assert lines.count("line 1") == 1  # the console has all of it
    told = lines.index("  end of its stderr:")
    assert lines[told + 1 : told + 21] == [f"  line {i}" for i in range(12, 31)] + ["  half"]


def test_an_exception_is_told_where_the_failure_is(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "raises.py"
    script.write_text("def f():\n    raise ValueError('no such batch')\n\nf()\n")
    run = start([str(script)])
    assert run.wait(60) == [1], run.err()
    assert "failed: exit code 1: ValueError: no such batch; no restarts are allowed" in run.err()


def test_where_the_end_of_stderr_cannot_be_kept_workers_write_to_the_console(launcher: Launcher, tmp_path: Path) -> None:
    (full := tmp_path / "full").mkdir()
    on_a_small_disk = f'mount -t tmpfs -o size=8m none {full} && exec "$@"'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", on_a_small_disk, "sh",
         launcher.program, "--no-python", "sh", "-c", "echo still there >&2; exit 3"],
        env={**base_environment(), "TMPDIR": str(full)},
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "still there\n" in ran.stderr and "end of its stderr" not in ran.stderr


def test_prefixes_have_the_time_and_the_node_on_request(shell: Start, tmp_path: Path) -> None:
    options = [f"--log-dir={tmp_path}/logs", "--tee=1", "--node-name=gpu-7", "--log-line-prefix-template=${time} ${node} [${rank}] "]
    run = shell("echo loss 1", options=options)
    assert run.wait(60) == [0], run.err()
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} gpu-7 \[0\] loss 1\n", run.out())


def test_of_a_progress_bar_the_console_has_few_states_and_the_last(shell: Start, tmp_path: Path) -> None:
    bar = r"for i in $(seq 50); do printf '\r%s of 50' $i; done; echo"
    run = shell(bar, options=[f"--log-dir={tmp_path}/logs", "--tee=1"])
    assert run.wait(60) == [0], run.err()
    shown = run.out().splitlines()
    assert shown[-1] == "[default0]:50 of 50" and len(shown) < 10
    (log,) = tmp_path.glob("logs/latest/attempt_0/0/stdout.log")
    assert log.read_text().count(" of 50") == 50


def test_stdin_reaches_the_worker(launcher: Launcher) -> None:
    done = subprocess.run(
        [launcher.program, "--no-python", "cat"],
        input="hi\n",
        capture_output=True,
        text=True,
        env=base_environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hi\n"


def test_streams_that_are_closed_are_dev_null_for_workers(
    launcher: Launcher, tmp_path: Path
) -> None:
    """No other file of the launcher takes their numbers."""
    script = tmp_path / "script"
    script.write_text('for n in 0 1 2; do (readlink /proc/$$/fd/$n >> "$1/streams"); done\n')
    worker = [launcher.program, "--standalone", "--no-python", "sh", str(script), str(tmp_path)]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *worker]
    assert subprocess.run(closed, env=base_environment(), timeout=60).returncode == 0
    assert (tmp_path / "streams").read_text() == 3 * "/dev/null\n"


RECORDED = """
import os, signal, sys, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("no luck")
    # A rank that fails as well, while it is being ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    time.sleep(600)

main()
"""


def test_the_root_cause_s_error_file_reaches_whoever_started_the_launcher(
    start: Start, tmp_path: Path
) -> None:
    script, own = tmp_path / "train.py", tmp_path / "own.json"
    script.write_text(RECORDED.replace("time.sleep(600)", "sys.exit(0)"))
    run = start([str(script)], procs=2, environment={"TORCHELASTIC_ERROR_FILE": str(own)})
    assert run.wait(120) == [1]
    message = json.loads(own.read_text())["message"]
    assert message["message"] == "ValueError: no luck"
    assert message["errorCode"] == 1
    assert "no luck" in message["extraInfo"]["py_callstack"]


def test_of_another_node_too(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    error = '{"message": {"message": "E: far", "extraInfo": {"py_callstack": "far", "timestamp": "5"}}}'
    script.write_text(
        "import os, sys, time\n"
        "if os.environ['GROUP_RANK'] == '0': time.sleep(600)\n"
        f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write('{error}')\n"
        "sys.exit(3)\n"
    )
    own = tmp_path / "own.json"
    run = start([str(script)], nodes=2, environment={"TORCHELASTIC_ERROR_FILE": str(own)})
    assert run.wait(60) == [1, 1]
    message = json.loads(own.read_text())["message"]
    assert (message["message"], message["errorCode"]) == ("E: far", 3)
    for node in (0, 1):
        assert "  traceback : far\n" in run.err(node)


# Prints the text that torch makes of the same failures.
PEER = """
import json, sys
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
name, failures = json.loads(sys.argv[1])
print(ChildFailedError(name, {rank: ProcessFailure(**f) for rank, f in failures}), end="")
"""


def shape(text: str) -> list[str]:
    """A summary's lines without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d", "<time>", text)
    text = re.sub(r"host      : \S+", "host      : <host>", text)
    return re.sub(r"(?<=pid: )\d+|(?<=by PID )\d+", "<pid>", text).splitlines()


def summary_in(text: str) -> str:
    return text[text.index("\n====") + 1 :]


@pytest.mark.parametrize("kind", ["exception", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("exit code", "signal"))])
def test_the_summary_is_what_torchrun_prints(start: Start, tmp_path: Path, kind: str) -> None:
    script, logs = tmp_path / "train.py", tmp_path / "logs"
    ending = {"exception": "raise ValueError('no luck')", "exit code": "os._exit(7)"}
    ending["signal"] = "os.kill(os.getpid(), signal.SIGKILL)"
    ready = tmp_path / "ready"
    script.write_text(
        RECORDED.replace("raise ValueError(\"no luck\")", ending[kind])
        .replace("    time.sleep", f"    open({str(ready)!r}, 'w')\n    time.sleep")
        .replace(
            "== \"1\":", f"== \"1\":\n        while not os.path.exists({str(ready)!r}): time.sleep(0.01)"
        )
    )
    run = start([str(script)], procs=2, options=[f"--log-dir={logs}"])
    assert run.wait(120) == [1]
    run_directory = (logs / "latest").resolve()
    (error_file,) = list(run_directory.glob("attempt_0/1/error.json")) or ["<N/A>"]
    code = {"exception": 1, "exit code": 7, "signal": -9}[kind]
    first = {"local_rank": 0, "pid": 1, "exitcode": 9, "error_file": "<N/A>"}
    root = {"local_rank": 1, "pid": 2, "exitcode": code, "error_file": str(error_file)}
    peer = subprocess.run(
        [PYTHON, "-c", PEER, json.dumps([str(script), [[1, root], [0, first]]])],
        capture_output=True,
        text=True,
        check=True,
    )
    # torch numbers failures as they come; here by rank.
    expected = summary_in("\n" + peer.stdout).replace("[0]:", "[x]:").replace("[1]:", "[0]:")
    assert shape(summary_in(run.err())) == shape(expected.replace("[x]:", "[1]:") + "\n")
