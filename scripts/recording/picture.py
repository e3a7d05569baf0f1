"""docs/pictures/job.svg: a job with two workers, one of which is killed from another terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path

from . import machine
from .animation import Recording, animated
from .scenes import fresh_job
from .terminal import Terminal, until

PICTURE = "docs/pictures/job.svg"
# What the peer of a killed worker says of its lost connection goes to a file; the film is about the launcher.
COMMAND = "actor-launcher --nproc-per-node 2 --max-restarts 3 --log-dir logs -r 2 ddp.py checkpoints 2500"
COLUMNS, LINES = 100, 24


class Camera:
    """Looks at the terminals until it is told to stop."""

    def __init__(self, *filmed: tuple[Terminal, Recording]) -> None:
        self.filmed = filmed
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.done.is_set():
            self.look()
            self.done.wait(0.03)
        self.look()

    def look(self) -> None:
        for terminal, recording in self.filmed:
            above, rows = terminal.scrolled_rows()
            recording.saw(time.monotonic(), above, rows)

    def __enter__(self) -> Camera:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def typed(terminal: Terminal, command: str) -> None:
    """As fast as people who know what they type."""
    for word in command.split(" "):
        terminal.type(word + " ")
        time.sleep(0.12)
    time.sleep(0.4)


def worker(rank: int) -> int:
    """The process number of a rank; a job has one of each."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if f"RANK={rank}".encode() in (place / "environ").read_bytes().split(b"\0"):
                return int(place.name)
    raise RuntimeError(f"rank {rank} is not there")


def record() -> None:
    fresh_job()
    print("the picture", file=sys.stderr, flush=True)
    with Terminal(COLUMNS, LINES, OMP_NUM_THREADS="1") as job, Terminal(COLUMNS, 3) as other:
        films = (
            Recording("a job with two workers", COLUMNS, LINES),
            Recording("another terminal: one of the workers is killed", COLUMNS, 3),
        )
        with Camera((job, films[0]), (other, films[1])):
            play(job, other)
    picture = animated("A worker is killed, and training goes on from the last step", films)
    (machine.CHECKOUT / PICTURE).write_text(picture)


def play(job: Terminal, other: Terminal) -> None:
    time.sleep(0.5)
    typed(job, COMMAND)
    ended = job.start("")
    until(lambda: job.shows("begins with step 1\n"), "the first step")
    time.sleep(2)
    typed(other, f"kill -9 {worker(1)}")
    other.run("")
    until(ended, "the end of the job")
    if not job.shows("ends after step"):
        raise RuntimeError("the job did not come to its last step")
    time.sleep(0.5)
