"""The process that writes images to disk where there is no actor-launcher to do it."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import subprocess
import weakref

from ..programs import program
from .arena import Arena

log = logging.getLogger("troupe.checkpoint")


class PrivateSaver:
    """`troupe saver`, for the images of one process. It outlives that until everything that is wanted is written:
    it hears of the process's end by that of a pipe. Raises ProgramNotFound.
    """

    def __init__(self, arena: Arena):
        descriptors = arena.descriptors
        self._process = subprocess.Popen(
            [program(), "saver", ",".join(map(str, descriptors))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,  # the terminal's signals are for the training process alone
        )
        # A child that is forked later, as those of a DataLoader, would hold the pipe open.
        os.register_at_fork(after_in_child=functools.partial(let_go, weakref.ref(self._process)))
        log.info(
            "images of this process are gone when it ends, since it was not started by actor-launcher; "
            "what is saved to disk is written by troupe saver (pid %d), also after its end",
            self._process.pid,
        )

    def close(self, within: float) -> None:
        """Waits until everything that is wanted is written, or for `within` seconds; then it goes on by itself."""
        let_go(weakref.ref(self._process))
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            log.warning("troupe saver (pid %d) is still writing", self._process.pid)


def let_go(process: weakref.ref[subprocess.Popen]) -> None:
    saver = process()
    if saver and saver.stdin:
        with contextlib.suppress(OSError):
            saver.stdin.close()
