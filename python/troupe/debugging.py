"""Under a debugger that follows processes, workers connect to it as well.

debugpy (VS Code's debugger; pydevd below it) follows a program into the Python processes that it starts: it replaces Python's
own functions for that. Between this process and its workers stands a native program, which never calls them. So the launcher
is given another interpreter for its workers: a command that runs `debugged.py`, with what the debugger itself would have put
into a child's command line. A worker that is started again connects anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

WORKER = Path(__file__).with_name("debugged.py")
PLACE = "troupe-worker"  # stands for a worker's own script, module or code


def follows_processes() -> bool:
    """Whether a debugger in this process has replaced what starts processes (debugpy: unless `subProcess` is false)."""
    return hasattr(os, "original_execve") and "_pydev_bundle.pydev_monkey" in sys.modules


@contextlib.contextmanager
def interpreter() -> Iterator[str]:
    """What the launcher is to run its workers with, while it runs: PYTHON_EXEC or this interpreter, if no debugger follows."""
    python = os.environ.get("PYTHON_EXEC") or sys.executable
    ways = debuggers_ways(python) if follows_processes() else {}
    if not ways:
        yield python
        return
    # Files without a name: a debugger ends this process by SIGKILL, and then they are gone as well.
    with in_memory("debugger", json.dumps(ways)) as told:
        words = shlex.join([python, "-u", str(WORKER), told])
        with in_memory("python", f'#!/bin/sh\nexec {words} "$@"\n') as command:
            yield command


def debuggers_ways(python: str) -> dict[str, list[str]]:
    """For a script, -m and -c: what the debugger puts between `python` and the name of the worker's script or module, or its
    code. Nothing, if it would not follow this program.
    """
    from _pydev_bundle.pydev_monkey import patch_args

    # debugpy's token for its adapter is in the command line of every process that it follows, where each user of this
    # machine can read it. That of our workers is in a file of this user's.
    ways = {}
    for way, words in ("", [PLACE]), ("-m", ["-m", PLACE]), ("-c", ["-c", PLACE]):
        _, *first, last = patch_args([python, *words])
        if not first or not last.endswith(PLACE):
            return {}
        ways[way] = [*first, last.removesuffix(PLACE)]
    return ways


@contextlib.contextmanager
def in_memory(name: str, content: str) -> Iterator[str]:
    """The path of a file with this content that other processes of this user can read and execute."""
    with os.fdopen(os.memfd_create(name), "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        # The kernel executes no file that is open for writing.
        reading = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)
    try:
        yield f"/proc/{os.getpid()}/fd/{reading}"
    finally:
        os.close(reading)
