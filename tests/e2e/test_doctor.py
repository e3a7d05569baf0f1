"""`actor-launcher doctor` names what would stop a job before the job runs into it."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from launchers import PYTHON, Launcher, base_environment, free_port, until
from test_certificates import Authority

# Importing torch on a machine with other work.
WITHIN = 120.0
NO_PYTHON = ["--no-python", "true"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@dataclass
class Report:
    """What a doctor has said, by subject."""

    code: int
    err: str
    grades: dict[str, str] = field(default_factory=dict)
    lines: dict[str, dict[str, str]] = field(default_factory=dict)

    def errors(self) -> list[str]:
        return [subject for subject, grade in self.grades.items() if grade == "error"]


def run(
    launcher: Launcher, *arguments: str, before: list[str] | None = None, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(before or []), launcher.program, *arguments],
        env=base_environment() | {"XDG_CONFIG_HOME": "/nowhere"} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        cwd=cwd,
    )


def doctor(launcher: Launcher, *arguments: str, **how: object) -> Report:
    done = run(launcher, "doctor", "--json", *arguments, **how)
    report = Report(done.returncode, done.stderr)
    for line in done.stdout.splitlines():
        finding = json.loads(line)
        report.grades[finding["subject"]] = finding["grade"]
        report.lines[finding["subject"]] = finding
    assert report.code == (1 if report.errors() else 0), done.stdout + done.stderr
    return report


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.touch()
    return str(path)


def test_a_machine_that_lacks_nothing_is_told_so_and_nothing_is_left(
    launcher: Launcher, script: str, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    left.mkdir()
    done = run(launcher, "doctor", "--python", str(PYTHON), script, TMPDIR=str(left))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^(ok|note) +torch +\d+\.\d+", done.stdout, re.M)
    assert re.search(r"^ok +command +", done.stdout, re.M)
    assert done.stdout.splitlines()[-1].startswith("nothing here would stop the job")
    texts = [line for line in done.stdout.splitlines() if "/" not in line]
    assert max(map(len, texts)) < 80
    assert "\x1b" not in done.stdout
    assert list(left.iterdir()) == []


def test_it_is_asked_as_troupe_doctor_as_well(launcher: Launcher) -> None:
    troupe = Launcher("troupe", str(Path(launcher.program).with_name("troupe")))
    assert doctor(troupe, *NO_PYTHON).code == 0
    assert "doctor" in run(troupe, "--help").stdout
    assert "doctor" in run(launcher, "--help").stdout


@needs_root
def test_a_small_shared_memory_is_an_error(launcher: Launcher) -> None:
    mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" "$@"'
    report = doctor(launcher, *NO_PYTHON, before=["unshare", "-m", "sh", "-c", mount])
    assert report.errors() == ["/dev/shm"]
    said = report.lines["/dev/shm"]
    assert said["found"] == "1.0 MiB of 1.0 MiB are free"
    assert "NCCL" in said["costs"]
    assert "--shm-size" in said["remedy"]


def test_too_few_open_files_are_an_error_if_the_hard_limit_says_so(launcher: Launcher) -> None:
    limited = ["sh", "-c", 'ulimit -n 64; exec "$0" "$@"']
    report = doctor(launcher, *NO_PYTHON, before=limited)
    assert report.errors() == ["open files"]
    assert "hard limit allows 64" in report.lines["open files"]["found"]
    # The launcher itself says the same.
    job = run(launcher, *NO_PYTHON, before=limited)
    assert job.returncode == 1
    assert report.lines["open files"]["found"] in job.stderr
    soft = doctor(launcher, *NO_PYTHON, before=["sh", "-c", 'ulimit -Sn 64; exec "$0" "$@"'])
    assert soft.grades["open files"] == "warning"
    assert soft.code == 0


def test_a_port_that_another_program_has_is_named_with_its_owner(launcher: Launcher) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        report = doctor(launcher, "--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}", *NO_PYTHON)
    assert report.errors() == ["port"]
    assert f"(pid {os.getpid()}) listens there" in report.lines["port"]["found"]
    assert report.grades["endpoint"] == "warning"  # loopback, for two nodes


@contextmanager
def master_at(launcher: Launcher, port: int) -> Iterator[None]:
    program = Path(launcher.program).with_name("actor-master")
    master = subprocess.Popen(
        [program, f"--listen=127.0.0.1:{port}", "--nnodes=2", "--rdzv-id=nightly"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "waiting for 2 node(s)" in master.stderr.readline()
        yield
    finally:
        master.kill()
        master.communicate(timeout=WITHIN)


def test_a_master_that_is_there_is_asked_which_job_it_has(launcher: Launcher) -> None:
    port = free_port()
    words = ["--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}", *NO_PYTHON]
    free = doctor(launcher, *words)
    assert free.grades["port"] == "ok"
    assert "is free" in free.lines["port"]["found"]
    later = doctor(launcher, "--node-rank=1", *words)
    assert later.grades["port"] == "note"
    assert "Connection refused" in later.lines["port"]["found"]
    with master_at(launcher, port):
        for rank in ("0", "1"):
            there = doctor(launcher, f"--node-rank={rank}", *words)
            assert there.grades["port"] == "ok", there.lines
            assert "the master of job 'nightly' answers" in there.lines["port"]["found"]


def test_an_endpoint_that_is_not_resolved_and_needs_a_token(launcher: Launcher, tmp_path: Path) -> None:
    words = ["--nnodes=2", "--rdzv-endpoint=no-such-host.invalid:29400"]
    bare = doctor(launcher, *words, *NO_PYTHON)
    assert bare.errors() == ["endpoint", "token"]
    assert "'no-such-host.invalid'" not in bare.lines["token"]["found"]
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 3)
    token.chmod(0o600)
    given = doctor(launcher, f"--token-file={token}", *words, *NO_PYTHON)
    assert given.errors() == ["endpoint"]
    assert str(token) in given.lines["token"]["found"]


def test_a_token_that_others_may_read_is_an_error(launcher: Launcher, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 3)
    token.chmod(0o644)
    report = doctor(launcher, f"--token-file={token}", *NO_PYTHON)
    assert report.errors() == ["token"]
    assert "may be read or written by others" in report.lines["token"]["found"]
    assert "chmod 600" in report.lines["token"]["remedy"]


def test_certificates_are_read_and_their_time_is_told(launcher: Launcher, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue("node-0", "node-0")
    report = doctor(launcher, *authority.proof("node-0"), *NO_PYTHON)
    assert report.grades["certificates"] == "ok"
    authority.openssl("x509 -req -in node-0.csr -CA authority.pem -CAkey authority.key -CAcreateserial "
                      "-days 3 -out node-0.pem -extfile node-0.ext")  # fmt: skip
    report = doctor(launcher, *authority.proof("node-0"), *NO_PYTHON)
    assert report.grades["certificates"] == "warning"
    assert re.search("this node.s expires in [23] days", report.lines["certificates"]["found"])  # to the second
    (tmp_path / "node-0.pem").write_text("no certificate")
    report = doctor(launcher, *authority.proof("node-0"), *NO_PYTHON)
    assert report.errors() == ["certificates"]


def interpreter(path: Path, line: str) -> str:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_without_torch_is_named(launcher: Launcher, tmp_path: Path, script: str) -> None:
    bare = interpreter(tmp_path / "python", f'exec {PYTHON} -I -S "$@"')
    report = doctor(launcher, "--python", bare, script)
    assert report.errors() == ["torch"]
    assert f"{bare} cannot import it: ModuleNotFoundError" in report.lines["torch"]["found"]
    assert report.lines["interpreter"]["found"].startswith(f"{bare} (--python), Python 3.")
    dead = interpreter(tmp_path / "dead", "echo no more >&2; exit 3")
    assert "does not run: no more" in doctor(launcher, "--python", dead).lines["interpreter"]["found"]
    missing = doctor(launcher, "--python", str(tmp_path / "none"), script)
    assert missing.errors() == ["command", "interpreter"]


def test_a_slow_import_is_told_of_and_found_where_the_script_would_find_it(
    launcher: Launcher, tmp_path: Path, script: str
) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(4)\nraise OSError('libcudart.so.12: not here')\n")
    began = time.monotonic()
    report = doctor(launcher, "--python", str(PYTHON), script)
    assert time.monotonic() - began < 30
    assert report.errors() == ["torch"]
    assert "OSError: libcudart.so.12: not here" in report.lines["torch"]["found"]
    assert "still waiting for: interpreter" in report.err


def test_directories_that_take_no_file_are_an_error(launcher: Launcher, tmp_path: Path) -> None:
    report = doctor(launcher, "--log-dir=/proc/logs", "--checkpoints=/proc/steps", *NO_PYTHON)
    assert report.errors() == ["log directory", "checkpoints"]
    fine = doctor(launcher, f"--log-dir={tmp_path}/logs", f"--checkpoints={tmp_path}/steps", *NO_PYTHON)
    assert fine.errors() == []
    assert "not there yet" in fine.lines["checkpoints"]["found"]
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_typed_ends_with_2(launcher: Launcher, tmp_path: Path) -> None:
    done = run(launcher, "doctor", "--nodes=2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "did you mean" in done.stderr
    assert "--nnodes" in done.stderr
    assert run(launcher, "doctor", "--token-file=a", "--certificate=b", cwd=tmp_path).returncode == 2


def test_a_script_that_is_called_doctor_is_run_as_torchrun_would(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "doctor").write_text("print('a script')\n")
    done = run(launcher, "doctor", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a script\n")
    assert "'doctor' is a file here, so it is run as the script" in " ".join(done.stderr.split())
    troupe = Launcher("troupe", str(Path(launcher.program).with_name("troupe")))
    assert doctor(troupe, *NO_PYTHON, cwd=tmp_path).code == 0
    # Only the first word is more than a script's name.
    (tmp_path / "doctor").unlink()
    late = run(launcher, "--nnodes=1", "doctor", cwd=tmp_path)
    assert late.returncode == 2
    assert "script 'doctor' does not exist" in late.stderr


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=["colours", "NO_COLOR"])
def test_colours_are_for_terminals(launcher: Launcher, variables: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [launcher.program, "doctor", *NO_PYTHON],
        env=base_environment() | {"TERM": "xterm"} | variables,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    shown = b""

    def ended() -> bool:
        nonlocal shown
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end is closed
            return True
        return False

    until(ended, WITHIN, "the end of the report")
    os.close(ours)
    assert done.wait(WITHIN) == 0
    assert b"would stop the job" in shown
    assert (b"\x1b[32mok" in shown) == (not variables)


