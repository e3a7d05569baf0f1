"""The master's journal from one run to the next, on a full disk, and what a master waits for before it ends."""

from __future__ import annotations

import errno
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CALM, Start
from launchers import TAG, Launcher, base_environment, end_tagged, free_port, until

WITHIN = 60.0
TOKEN = {"TROUPE_TOKEN": "0123456789abcdef0123456789abcdef"}
TRAINS = 'echo trained >> "$1"; exit "$2"'


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("code", [0, 7], ids=["succeeded", "failed"])
def test_the_next_run_trains_whatever_the_last_one_came_to(
    shell: Start, tmp_path: Path, code: int
) -> None:
    trained, options = tmp_path / "trained", [f"--journal={tmp_path / 'journal'}"]
    first = shell(TRAINS, trained, code, options=options)
    assert first.wait(WITHIN) == [1 if code else 0], first.err()
    second = shell(TRAINS, trained, 0, options=options)
    assert second.wait(WITHIN) == [0], second.err()
    assert lines(trained) == ["trained", "trained"]
    verdict = "failed" if code else "succeeded"
    assert f"the run before has {verdict}" in second.err()
    assert "this is a new run" in second.err()


def test_the_journal_of_another_job_is_refused_by_name(shell: Start, tmp_path: Path) -> None:
    trained, journal = tmp_path / "trained", tmp_path / "journal"
    for job, code in (("one", 0), ("two", 1), ("one", 0)):
        options = [f"--journal={journal}", f"--rdzv-id={job}", "--nnodes=1"]
        run = shell(TRAINS, trained, 0, options=options, port=free_port())
        assert run.wait(WITHIN) == [code], run.err()
        if code:
            assert "it belongs to job 'one', and this is job 'two' (--rdzv-id)" in run.err()
    assert len(lines(trained)) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KiB; needs root."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError as full:
                assert full.errno == errno.ENOSPC
                return filler


FAILS_ONCE = """
echo $$ > "$1/pid.part" && mv "$1/pid.part" "$1/pid"
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && { echo again >> "$1/again"; exit 0; }
until [ -e "$1/fail" ]; do sleep 0.05; done; exit 3
"""


def test_a_full_disk_under_a_journal_that_nobody_asked_for_holds_up_nothing(
    shell: Start, tmp_path: Path, small_disk: Path
) -> None:
    run = shell(FAILS_ONCE, tmp_path, restarts=1, environment={"TMPDIR": str(small_disk)})
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    fill(small_disk)
    (tmp_path / "fail").touch()
    assert run.wait(WITHIN) == [0], run.err()
    assert lines(tmp_path / "again") == ["again"]


def test_a_full_disk_under_a_named_journal_is_waited_for(
    shell: Start, tmp_path: Path, small_disk: Path
) -> None:
    options = [f"--journal={small_disk / 'journal'}"]
    run = shell(FAILS_ONCE, tmp_path, restarts=1, options=options)
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    filler = fill(small_disk)
    # What is left of the journal's own last page takes a few records.
    (tmp_path / "fail").touch()
    until(
        lambda: "Training goes on" in run.err() or run.launchers[0].poll() is not None,
        WITHIN,
        "the master's word about it",
    )
    if run.launchers[0].poll() is None:
        assert lines(tmp_path / "again") == []
        filler.unlink()
    assert run.wait(WITHIN) == [0], run.err()
    assert lines(tmp_path / "again") == ["again"]


class Guest(Launcher):
    """A node that runs no master, under its own options."""

    def command(self, worker: list[str], **how: object) -> list[str]:
        where = f"--rdzv-endpoint=127.0.0.1:{how['port']}"
        return [self.program, where, "--rdzv-conf=is_host=0", *how["options"], *worker]


@pytest.fixture
def master(launcher: Launcher, tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A master that stands alone, and knows nothing of its nodes' options."""
    tag = f"master-{tmp_path.name}"
    program = str(Path(launcher.program).with_name("actor-master"))
    with (tmp_path / "master.err").open("wb") as said:
        process = subprocess.Popen(
            [program, "-v", "--listen=127.0.0.1:0", "--nnodes=1", f"--journal={tmp_path / 'j'}"],
            stdin=subprocess.DEVNULL,
            stderr=said,
            env=base_environment() | TOKEN | CALM | {TAG: tag},
        )
    yield process
    end_tagged(tag)
    process.wait()


def port_of(tmp_path: Path) -> int:
    said = tmp_path / "master.err"
    until(lambda: "waiting for" in said.read_text(), WITHIN, "a master that listens")
    return int(said.read_text().split(" at 127.0.0.1:")[1].split()[0])


# Deaf for longer than a master used to wait for its nodes.
SLOW_TO_END = """
trap 'sleep 9; echo saved >> "$1/saved"; exit 0' TERM
echo $$ > "$1/pid.part" && mv "$1/pid.part" "$1/pid"
while :; do sleep 0.05; done
"""


def test_a_master_alone_stays_until_its_nodes_have_ended_their_workers(
    launcher: Launcher, shell: Start, master: subprocess.Popen, tmp_path: Path
) -> None:
    guest = Guest(launcher.name, launcher.program)
    run = shell(
        SLOW_TO_END,
        tmp_path,
        launcher=guest,
        port=port_of(tmp_path),
        options=["--no-python", "--shutdown-timeout=30"],
        environment=TOKEN,
    )
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    master.send_signal(signal.SIGTERM)
    time.sleep(8)  # of 9 that the worker takes
    assert master.poll() is None, (tmp_path / "master.err").read_text()
    assert run.wait(WITHIN) == [1], run.err()
    assert master.wait(WITHIN) == 1
    assert lines(tmp_path / "saved") == ["saved"]


def test_a_second_signal_ends_the_wait(
    launcher: Launcher, shell: Start, master: subprocess.Popen, tmp_path: Path
) -> None:
    guest = Guest(launcher.name, launcher.program)
    options = ["--no-python", "--shutdown-timeout=30"]
    port = port_of(tmp_path)
    shell(SLOW_TO_END, tmp_path, launcher=guest, port=port, options=options, environment=TOKEN)
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    master.send_signal(signal.SIGTERM)
    said = tmp_path / "master.err"
    until(lambda: "the job ends" in said.read_text(), WITHIN, "the verdict")
    master.send_signal(signal.SIGTERM)
    assert master.wait(5) == 1


def test_another_script_at_the_same_address_is_refused_by_name(
    launcher: Launcher, shell: Start, tmp_path: Path
) -> None:
    port = free_port()
    options = ["--nnodes=1:2"]
    until_enough = 'touch "$1/began"; until [ -e "$1/enough" ]; do sleep 0.05; done'
    first = shell(until_enough, tmp_path, port=port, options=options, ranked=False)
    until(lambda: (tmp_path / "began").exists(), WITHIN, "a worker")
    second = shell("exit 0", port=port, options=options, ranked=False)
    assert second.wait(WITHIN) == [1]
    assert f"runs '{Path(first.worker[0]).name}" in second.err()
    assert f"was started with '{Path(second.worker[0]).name}'" in second.err()
    (tmp_path / "enough").touch()
    assert first.wait(WITHIN) == [0], first.err()
