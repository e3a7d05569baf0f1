"""Which master a node obeys: the newest that it has followed, of its own job, and nothing else at its address."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CALM, Start
from launchers import TAG, Launcher, alive, base_environment, end_tagged, free_port, until

WITHIN = 60.0
SIZE = ["--nnodes=1:2"]
TOKEN = "0123456789abcdef0123456789abcdef"
TRAINS = 'echo $$ > "$1/pid.part" && mv "$1/pid.part" "$1/pid"; until [ -e "$1/enough" ]; do sleep 0.05; done'


class Forwarder:
    """An address that leads to one master or another, as a name or a service does."""

    def __init__(self) -> None:
        self.target: int | None = None
        self.passing: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def leads_to(self, port: int) -> None:
        """From now on; connections by the old way are cut off."""
        self.target = port
        cut, self.passing = self.passing, []
        for end in cut:
            with contextlib.suppress(OSError):  # it may be cut off already
                end.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        while True:
            came = self.listener.accept()[0]
            try:
                went = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                came.close()
                continue
            self.passing += [came, went]
            for here, there in ((came, went), (went, came)):
                threading.Thread(target=pass_on, args=(here, there), daemon=True).start()


def pass_on(here: socket.socket, there: socket.socket) -> None:
    try:
        while heard := here.recv(65536):
            there.sendall(heard)
        there.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other direction ended it


class Guest(Launcher):
    """A node that runs no master."""

    def command(self, worker: list[str], **how: object) -> list[str]:
        where = f"--rdzv-endpoint=127.0.0.1:{how['port']}"
        return [self.program, *SIZE, "--node-rank=1", where, "--no-python", *worker]


class Web:
    """A server that takes whatever is said for a bad request."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            came = self.listener.accept()[0]
            with contextlib.suppress(OSError), came:
                came.recv(65536)
                came.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


class Master:
    def __init__(self, launcher: Launcher, directory: Path, tag: str, *options: str) -> None:
        self.port = free_port()
        self.said = directory.with_suffix(".err")
        program = str(Path(launcher.program).with_name("actor-master"))
        conf = "--rdzv-conf=" + CALM["PET_RDZV_CONF"]
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [program, "-v", f"--listen=127.0.0.1:{self.port}", *SIZE, conf, *options],
                stdin=subprocess.DEVNULL,
                stderr=said,
                env=base_environment() | {"TROUPE_TOKEN": TOKEN, TAG: tag},
            )
        until(lambda: f":{self.port}" in self.err(), WITHIN, f"a master at port {self.port}")

    def err(self) -> str:
        return self.said.read_text(errors="replace")


@pytest.fixture
def masters(launcher: Launcher, tmp_path: Path) -> Iterator[list[Master]]:
    tag = f"masters-{tmp_path.name}"
    all_of_them = [Master(launcher, tmp_path / name, tag) for name in ("older", "newer")]
    all_of_them.append(Master(launcher, tmp_path / "another", tag, "--rdzv-id=another"))
    yield all_of_them
    end_tagged(tag)
    for master in all_of_them:
        master.process.wait()


def test_an_older_master_is_not_obeyed_and_training_goes_on(
    launcher: Launcher, shell: Start, masters: list[Master], tmp_path: Path
) -> None:
    older, newer, _ = masters
    forwarder = Forwarder()
    forwarder.leads_to(newer.port)
    guest = Guest(launcher.name, launcher.program)
    token = {"TROUPE_TOKEN": TOKEN}
    run = shell(TRAINS, tmp_path, launcher=guest, port=forwarder.port, environment=token)
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    worker = int((tmp_path / "pid").read_text())

    forwarder.leads_to(older.port)
    refused = "node node-1 was refused: it has followed a newer master"
    until(lambda: older.err().count(refused) >= 3, WITHIN, "refusals")
    older_there = "is older than the one this node has followed"
    until(lambda: older_there in run.err(), WITHIN, "the node's word about it")
    assert alive(worker)
    assert "is here" not in older.err()

    (tmp_path / "enough").touch()
    forwarder.leads_to(newer.port)
    assert run.wait(WITHIN) == [0], run.err()
    assert newer.process.wait(WITHIN) == 0
    assert older.process.poll() is None, "it was not told to end, and has"


def test_in_its_masters_absence_a_node_trains_on_whatever_answers_there(
    launcher: Launcher, shell: Start, masters: list[Master], tmp_path: Path
) -> None:
    _, own, another = masters
    forwarder, web = Forwarder(), Web()
    forwarder.leads_to(own.port)
    guest = Guest(launcher.name, launcher.program)
    patience = 2.0
    conf = f"{CALM['PET_RDZV_CONF']},read_timeout={patience:g}"
    environment = {"TROUPE_TOKEN": TOKEN, "PET_RDZV_CONF": conf}
    run = shell(TRAINS, tmp_path, launcher=guest, port=forwarder.port, environment=environment)
    until(lambda: (tmp_path / "pid").exists(), WITHIN, "a worker")
    worker = int((tmp_path / "pid").read_text())

    gone = time.monotonic()
    forwarder.leads_to(web.port)
    until(lambda: "it does not speak TLS" in run.err(), WITHIN, "the node's word about a web server")
    forwarder.leads_to(another.port)
    until(lambda: "serves another job ('another')" in run.err(), WITHIN, "about another job's master")
    forwarder.leads_to(free_port())
    until(lambda: time.monotonic() > gone + 2 * patience, WITHIN, "a node with nothing running to give up")
    assert "training goes on without it" in run.err()
    assert alive(worker)
    assert run.launchers[0].poll() is None

    (tmp_path / "enough").touch()
    forwarder.leads_to(own.port)
    assert run.wait(WITHIN) == [0], run.err()
