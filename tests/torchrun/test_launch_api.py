"""`troupe.launch` beside torch's elastic_launch, and what only ours promises."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from conftest import Python
from launchers import PYTHON, processes_tagged, until

STORY = Path(__file__).with_name("api_story.py")

# A script as users have them: it guards its call, and workers import it as __mp_main__.
SCRIPT = """
import os, pathlib, signal, sys, time
import troupe

def waits(seen):
    pathlib.Path(seen, os.environ["RANK"]).touch()
    time.sleep(600)

if __name__ == "__main__":
    config = troupe.LaunchConfig(1, 1, nproc_per_node=2, rdzv_endpoint="localhost:0", max_restarts=0)
    try:
        troupe.launch(config, waits)(sys.argv[1])
    except troupe.SignalException as e:
        print(e.sigval.name)
"""


def finished(process: subprocess.Popen, within: float = 180) -> str:
    out, err = process.communicate(timeout=within)
    assert process.returncode == 0, err
    return out


def test_functions_commands_and_failures_come_out_as_with_torch(python: Python) -> None:
    theirs, ours = python(STORY, "torch"), python(STORY, "troupe")
    reference, seen = (json.loads(finished(side)) for side in (theirs, ours))
    assert seen["story"] == reference["story"]
    assert not seen["torch is loaded"]


def waiting(python: Python, tmp_path: Path, tag: str) -> subprocess.Popen:
    """A launch whose two workers have begun to wait for ever."""
    (tmp_path / "waits.py").write_text(SCRIPT)
    (tmp_path / "seen").mkdir()
    process = python("waits.py", tmp_path / "seen")
    until(lambda: len(list((tmp_path / "seen").iterdir())) == 2, 60, "the workers run")
    return process


def test_a_signal_ends_the_workers_and_is_raised(python: Python, tmp_path: Path, tag: str) -> None:
    process = waiting(python, tmp_path, tag)
    process.send_signal(signal.SIGTERM)
    assert finished(process) == "SIGTERM\n"
    until(lambda: not list(processes_tagged(tag)), 60, "nothing is left")
    assert not list(tmp_path.glob("troupe_launch_*"))


def test_workers_end_with_the_program_that_launched_them(
    python: Python, tmp_path: Path, tag: str
) -> None:
    process = waiting(python, tmp_path, tag)
    process.kill()
    process.communicate()
    until(lambda: not list(processes_tagged(tag)), 60, "nothing is left")


# What a worker must have done when it is gone, and a thread of a gloo group that is in the middle of Python code when
# the function returns: a tear-down of the interpreter aborts the process there.
LEAVES_THINGS_OPEN = """
import atexit, os, pathlib, sys, threading, time
import troupe

def leaves_things_open(seen):
    import torch, torch.distributed as dist
    rank = os.environ["RANK"]
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    work = dist.all_reduce(torch.ones(1), async_op=True)
    work.get_future().add_done_callback(lambda _: time.sleep(1))
    time.sleep(0.2)  # the other rank has joined in, and the group's thread has begun to sleep

    def late():
        time.sleep(0.3)
        pathlib.Path(seen, "thread" + rank).touch()

    threading.Thread(target=late).start()
    atexit.register(lambda: pathlib.Path(seen, "handler" + rank).touch())
    sys.left_open = open(pathlib.Path(seen, "file" + rank), "w")
    sys.left_open.write("whole")
    sys.stdout.write("said by %s\\n" % rank)
    return rank

if __name__ == "__main__":
    for _ in range(3):
        config = troupe.LaunchConfig(1, 1, nproc_per_node=2, rdzv_endpoint="localhost:0", max_restarts=0)
        assert troupe.launch(config, leaves_things_open)(sys.argv[1]) == {0: "0", 1: "1"}
"""


def test_what_a_function_leaves_open_does_not_fail_its_worker(
    python: Python, tmp_path: Path
) -> None:
    (tmp_path / "open.py").write_text(LEAVES_THINGS_OPEN)
    seen = tmp_path / "seen"
    seen.mkdir()
    said = finished(python("open.py", seen))
    assert sorted(said.splitlines()) == 3 * ["said by 0"] + 3 * ["said by 1"]
    assert sorted(file.name for file in seen.iterdir()) == [
        f"{what}{rank}" for what in ("file", "handler", "thread") for rank in (0, 1)
    ]
    assert [(seen / f"file{rank}").read_text() for rank in (0, 1)] == ["whole", "whole"]


def test_workers_leave_with_the_interpreters_own_exit_codes(python: Python, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("""
import sys
import troupe

def leaves(how):
    if how == "interrupted":
        raise KeyboardInterrupt
    if how == "full":
        sys.stdout = open("/dev/full", "w")
        print("lost")
        return
    sys.exit(how)

if __name__ == "__main__":
    for how in ("a text", 300, None, "full", "interrupted"):
        config = troupe.LaunchConfig(1, 1, 1, rdzv_endpoint="localhost:0", max_restarts=0)
        try:
            troupe.launch(config, leaves)(how)
            print(how, "returned")
        except troupe.ChildFailedError as e:
            print(how, e.get_first_failure()[1].exitcode)
""")
    assert finished(python("leaves.py")).splitlines() == [
        "a text 1",
        "300 44",
        "None returned",
        "full 120",
        "interrupted -2",
    ]


def test_torchs_own_configuration_and_exception_serve_as_well(
    python: Python, tmp_path: Path
) -> None:
    (tmp_path / "fails.py").write_text("""
import troupe
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig

logs = DefaultLogsSpecs(log_dir="logs", redirects=Std.ALL)
config = LaunchConfig(1, 1, 1, logs, "job", rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0)
try:
    troupe.launch(config, "sh")("-c", "echo said; exit 3")
except ChildFailedError as e:
    assert isinstance(e, troupe.ChildFailedError)
    print(e.get_first_failure()[1].exitcode)
""")
    assert finished(python("fails.py")) == "3\n"
    assert [f.read_text() for f in tmp_path.glob("logs/job_*/attempt_0/0/stdout.log")] == ["said\n"]


def test_what_cannot_be_is_said_before_anything_runs(python: Python, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("""
import troupe
for entrypoint, fields in ((lambda: 0, {}), (3, {}), (print, {"metrics_cfg": {"a": "b"}}),
                           (print, {"rdzv_configs": {"a": "b,c"}}), (print, {"logs_specs": object()})):
    try:
        troupe.launch(troupe.LaunchConfig(1, 1, 1, rdzv_endpoint="localhost:0", **fields), entrypoint)()
    except ValueError as e:
        print(e)
try:
    troupe.launch(troupe.LaunchConfig(1, 1, 1, rdzv_backend="etcd"), print)()
except troupe.LauncherError as e:
    print(e)
""")
    lines = finished(python("wrong.py")).splitlines()
    assert len(lines) == 6
    assert "must be picklable" in lines[0]
    assert "not 3" in lines[1]
    assert "metrics_cfg" in lines[2]
    assert "a=b,c" in lines[3]
    assert "troupe.LogsSpecs" in lines[4]
    assert "exited with" in lines[5]


def test_run_is_the_launcher_with_this_interpreter(python: Python, tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(
        "import os, sys; print(sys.executable, sys.argv, os.getppid())"
    )
    process = python(
        "-m", "troupe.run", "--standalone", "who.py", "--flag", "x", PATH="/usr/bin:/bin"
    )
    assert finished(process) == f"{PYTHON} ['who.py', '--flag', 'x'] {process.pid}\n"


def test_a_missing_program_is_one_clear_line(python: Python, tmp_path: Path) -> None:
    process = python("-m", "troupe.run", "x.py", TROUPE_BIN_DIR=str(tmp_path))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert (
        err == f"python -m troupe.run: there is no actor-troupe in TROUPE_BIN_DIR ({tmp_path})\n"
    )
