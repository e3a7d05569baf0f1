"""The process that writes images to disk where there is no actor-launcher to do it."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import subprocess
import time
import weakref

from ..programs import program
from .arena import Arena
from .library import CheckpointError

log = logging.getLogger("troupe.checkpoint")

STARTS_MAX, STARTS_WITHIN = 5, 60.0  # in so many seconds; a saver that ends again and again is not started any more


class PrivateSaver:
    """`troupe saver`, for the images of one process. It outlives that until everything that is wanted is written:
    it hears of the process's end by that of a pipe. One that is killed is started again, and finds in memory what is still to be
    written. Raises ProgramNotFound.
    """

    def __init__(self, arena: Arena):
        # Own ones: a saver is started again also after the arena was closed.
        self._descriptors = [os.dup(one) for one in arena.descriptors]
        self._parent = os.getpid()
        self._starts: list[float] = []
        try:
            self._process = self._start()
        except BaseException:
            self._let_memory_go()
            raise
        # A child that is forked later, as those of a DataLoader, would hold the pipe open.
        os.register_at_fork(after_in_child=functools.partial(let_go_of, weakref.ref(self)))
        log.info(
            "images of this process are gone when it ends, since it was not started by actor-launcher; "
            "what is saved to disk is written by troupe saver (pid %d), also after its end",
            self._process.pid,
        )

    def _start(self) -> subprocess.Popen:
        self._starts.append(time.monotonic())
        return subprocess.Popen(
            [program(), "saver", ",".join(map(str, self._descriptors))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=self._descriptors,
            start_new_session=True,  # the terminal's signals are for the training process alone
        )

    def require_alive(self) -> None:
        """Starts it again if it has ended. Raises CheckpointError if that does not help."""
        how = self._process.poll() if self._parent == os.getpid() else None
        if how is None:
            return
        ended = f"troupe saver (pid {self._process.pid}) " + (
            f"was killed by signal {-how}" if how < 0 else f"ended with {how}"
        )
        self._starts = [at for at in self._starts if time.monotonic() - at < STARTS_WITHIN]
        if len(self._starts) >= STARTS_MAX:
            raise CheckpointError(
                f"{ended}, as {len(self._starts)} have within {STARTS_WITHIN:g} s: nothing is written to the disk"
            )
        let_go(self._process)
        self._process = self._start()
        log.warning(
            "%s; a new one (pid %d) writes what is not on the disk yet", ended, self._process.pid
        )

    def close(self, within: float) -> None:
        """Waits until everything that is wanted is written, or for `within` seconds; then it goes on by itself. One that is
        killed meanwhile is started again, as before."""
        if self._parent != os.getpid():
            return
        try:
            self._await_end(within)
        finally:
            self._let_memory_go()

    def _let_memory_go(self) -> None:
        for one in self._descriptors:
            os.close(one)
        self._descriptors = []

    def _await_end(self, within: float) -> None:
        until = time.monotonic() + within
        while True:
            try:
                self.require_alive()
            except (CheckpointError, OSError) as why:
                log.warning("%s; what was saved last is lost with this process", why)
                return
            let_go(self._process)
            try:
                how = self._process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("troupe saver (pid %d) is still writing", self._process.pid)
                return
            if how >= 0:
                return


def let_go_of(saver: weakref.ref[PrivateSaver]) -> None:
    if one := saver():
        let_go(one._process)


def let_go(process: subprocess.Popen) -> None:
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()
