"""Mistakes on the command line get one clear line and an exit code, not a hang or a stack trace."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest
from launchers import Launcher, base_environment

WITHIN = 60.0


def ended(launcher: Launcher, *arguments: str) -> tuple[int, list[str]]:
    """Exit code and the lines on stderr; nothing may be said on stdout."""
    done = subprocess.run(
        [launcher.program, *arguments],
        env=base_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def refused(launcher: Launcher, *arguments: str) -> tuple[int, str]:
    """Exit code and the one line that is said."""
    code, lines = ended(launcher, *arguments)
    assert len(lines) == 1, "\n".join(lines)
    return code, lines[0]


# Usage errors are found before anything is started. What is named is what the user has to change. The
# code is 2 for all that has to be typed differently.
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--no-such-option", "script.py"], "no-such-option"),
        (["--max-restarts=many", "script.py"], "max-restarts"),
        (["--node-rank=first", "script.py"], "node-rank"),
        (["--start-method=thread", "script.py"], "start-method"),
        (["--n=1", "script.py"], "--nnodes, --no-python"),
        (["--role"], "role"),
        (["--accelerator=ascend-npu", "script.py"], "--accelerator ascend-npu: this machine shows no Ascend NPU"),
        (["--recover-strategy=reboot", "script.py"], "'reboot' is none of retry"),
        ([], "script"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_read_is_named_and_exits_2(
    launcher: Launcher, arguments: list[str], named: str
) -> None:
    code, line = refused(launcher, *arguments)
    assert code == 2
    assert named in line


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--nnodes=0", "script.py"], "nnodes"),
        (["--nnodes=3:2", "script.py"], "nnodes"),
        (["--nnodes=1:2:3", "script.py"], "nnodes"),
        (["--nnodes=many", "script.py"], "nnodes"),
        (["--nnodes=99999999999999999999", "script.py"], "nnodes"),
        (["--nnodes=1000000", "script.py"], "nnodes"),
        (["--nproc-per-node=0", "script.py"], "nproc-per-node"),
        (["--nproc-per-node=-1", "script.py"], "nproc-per-node"),
        (["--nproc-per-node=1000000", "script.py"], "nproc-per-node"),
        (["--max-restarts=-1", "script.py"], "max-restarts"),
        (["--nnodes=2", "--node-rank=2", "--rdzv-endpoint=127.0.0.1:1", "script.py"], "node-rank"),
        (["--nnodes=2", "--node-rank=-1", "--rdzv-endpoint=127.0.0.1:1", "script.py"], "node-rank"),
        (["--nnodes=2", "--rdzv-endpoint=host:port", "script.py"], "rdzv-endpoint"),
        (["--nnodes=2", "--rdzv-endpoint=host:99999", "script.py"], "rdzv-endpoint"),
        (["--master-port=70000", "script.py"], "master-port"),
        (["--shutdown-timeout=-1", "script.py"], "shutdown-timeout"),
        (["-m", "--no-python", "script"], "no-python"),
        (["--rdzv-backend=etcd", "--rdzv-endpoint=h:1", "script.py"], "rdzv-backend"),
        (["--tee=4", "script.py"], "tee"),
        (["--signals-to-handle=SIGKILL", "script.py"], "SIGKILL"),
        (["--numa-binding=node", "--no-python", "true"], "numa-binding"),
        (["--elasticity-config=/no/such/file", "--no-python", "true"], "elasticity-config"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_named(
    launcher: Launcher, arguments: list[str], named: str
) -> None:
    code, line = refused(launcher, *arguments)
    assert code == 2
    assert named in line


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A script that would do, if it were ever started."""
    path = tmp_path / "script.py"
    path.touch()
    return str(path)


# What is at the endpoint may be a master that is just starting, on a machine whose name appears
# late; so it is tried for a while. The tests make the while short.
IMPATIENT = "--rdzv-conf=read_timeout=0.5"


def test_a_port_that_another_program_has_is_named_and_given_up(
    launcher: Launcher, script: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        endpoint = f"--rdzv-endpoint=127.0.0.1:{port}"
        code, lines = ended(launcher, "--nnodes=2", "--node-rank=0", endpoint, IMPATIENT, script)
    assert code == 1
    assert all(str(port) in line for line in lines)
    assert len(lines) <= 2, "what is wrong, and that it is given up"


def test_a_name_that_does_not_resolve_is_named_and_given_up(
    launcher: Launcher, script: str
) -> None:
    endpoint = "--rdzv-endpoint=no-such-host.invalid:29400"
    code, lines = ended(launcher, "--nnodes=2", "--node-rank=1", endpoint, IMPATIENT, script)
    assert code == 1
    assert all("no-such-host.invalid" in line for line in lines)
    assert len(lines) <= 2, "what is wrong, and that it is given up"


def test_too_few_open_files_are_one_line_with_what_is_needed(launcher: Launcher) -> None:
    command = [launcher.program, "--nnodes=2", "--node-rank=0", "--rdzv-endpoint=127.0.0.1:1"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *command]
        + ["--nproc-per-node=57", "--no-python", "true"],
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "2450" in line
    assert "1024" in line


def test_too_little_memory_ends_in_words_of_the_system(launcher: Launcher) -> None:
    """A thread is refused in each life of the supervisor; the keeper says so once, and gives up."""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -s 8192; ulimit -v 61440; exec "$@"', "sh", launcher.program]
        + ["--standalone", "--no-python", "true"],
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    once, end = done.stderr.splitlines()
    assert once.endswith("starting it again")
    assert end.endswith("giving up")
    assert "ulimit -v" in once and "ulimit -v" in end


def test_a_program_that_cannot_be_executed_is_named(launcher: Launcher, tmp_path: Path) -> None:
    program = tmp_path / "not-executable"
    program.write_text("#!/bin/sh\n")
    for wrong in (program, tmp_path / "missing"):
        code, line = refused(launcher, "--no-python", str(wrong))
        assert code == 2
        assert str(wrong) in line


def test_a_script_that_does_not_exist_is_named(launcher: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "missing.py"
    (tmp_path / "misssing.py").touch()
    code, line = refused(launcher, "--max-restarts=3", str(script))
    assert code == 2
    assert line.endswith(f"does not exist; did you mean '{tmp_path}/misssing.py'?")
    assert str(script) in line
    assert re.search("no such file|does not exist", line, re.IGNORECASE)


def test_two_tasks_of_slurm_on_a_node_are_told_how_to_be_one(launcher: Launcher) -> None:
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b", "SLURM_STEP_NODELIST": "a,b", "SLURM_NNODES": "2",
             "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_NODEID": "0"}
    for task in ("0", "1"):
        done = subprocess.run(
            [launcher.program, "--nnodes=auto", "--no-python", "true"],
            env=base_environment() | slurm | {"SLURM_LOCALID": task},
            capture_output=True,
            text=True,
            timeout=WITHIN,
        )
        assert done.returncode == 2, done.stderr
        assert "--ntasks-per-node=1" in done.stderr


def test_an_empty_variable_is_told_by_its_name(launcher: Launcher) -> None:
    done = subprocess.run(
        [launcher.program, "--no-python", "true"],
        env=base_environment() | {"PET_NNODES": ""},
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.returncode == 2, done.stderr
    assert "PET_NNODES: '' is neither N nor MIN:MAX" in done.stderr


def test_a_master_that_cannot_begin_says_so_by_its_exit_code_where_an_operator_would_take_it_for_a_verdict(
    launcher: Launcher, tmp_path: Path
) -> None:
    program = Path(launcher.program).with_name("actor-master")
    for more, expected in (([], 1), (["--elastic-job=words"], 75), (["--elastic-job=words", "--nnodes=x"], 2)):
        done = subprocess.run(
            [program, "--listen=127.0.0.1:0", "--nnodes=1", f"--journal={tmp_path}/none/j.sqlite", *more],
            env=base_environment(),
            capture_output=True,
            text=True,
            timeout=WITHIN,
        )
        assert done.returncode == expected, done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith("actor-master: ")
