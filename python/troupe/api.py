"""`launch`: torch's elastic_launch on the actor-launcher."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from . import debugging
from .config import command_line
from .errors import LauncherError, child_failed, signalled
from .programs import program

WORKER = Path(__file__).with_name("worker.py")
# Flags in the environment would change what `config` says; options do not, all of them are given.
FLAGS_IN_ENVIRONMENT = {
    f"PET_{flag}"
    for flag in ("STANDALONE", "MODULE", "NO_PYTHON", "RUN_PATH", "VIRTUAL_LOCAL_RANK")
}
PR_SET_PDEATHSIG = 1


class launch:  # noqa: N801 - torch's elastic_launch is a class with a function's name, too
    """Runs `entrypoint` in the workers that `config` describes: `launch(config, entrypoint)(*arguments)`.

    `config`: troupe's or torch's LaunchConfig. `entrypoint`: a function, which workers import as
    `multiprocessing`'s spawned processes do (so it and its arguments must be picklable, and a script guards its
    own call with `if __name__ == "__main__"`), or the name of a program, run with the arguments as text, in which
    "${local_rank}" is filled in.

    Returns what the function returned in each worker of this node, by global rank; None for programs.

    Raises ChildFailedError when workers failed more often than `max_restarts`; SignalException when one of
    `signals_to_handle` came (in the main thread only), after the workers have ended; LauncherError when it
    did not come to workers; ValueError for a configuration that cannot be; ProgramNotFound without a launcher.
    """

    def __init__(self, config: Any, entrypoint: Callable[..., Any] | str) -> None:
        self._config = config
        self._entrypoint = entrypoint

    def __call__(self, *arguments: Any) -> dict[int, Any]:
        with private_directory() as directory, debugging.interpreter() as python:
            worker = worker_of(self._entrypoint, arguments, directory)
            options = [*command_line(self._config), f"--outcome-file={directory / 'outcome.json'}"]
            command = [program(), "run", "--quiet", *options, *worker]
            environment = {k: v for k, v in os.environ.items() if k not in FLAGS_IN_ENVIRONMENT}
            environment["PYTHON_EXEC"] = python
            code, got = run(command, environment, self._config.signals_to_handle)
            outcome = read_outcome(directory, code)
            if got:
                raise signalled(got, os.getpid())
            if outcome["failures"]:
                raise child_failed(name_of(self._entrypoint, arguments), outcome["failures"])
            if not outcome["success"]:
                raise LauncherError(outcome["reason"])
            return results(self._entrypoint, outcome, directory)


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    directory = tempfile.mkdtemp(prefix="troupe_launch_")  # mode 0700
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def worker_of(
    entrypoint: Callable[..., Any] | str, arguments: tuple[Any, ...], directory: Path
) -> list[str]:
    """The workers' command line as the launcher takes it."""
    if isinstance(entrypoint, str):
        return ["--no-python", "--", entrypoint, *map(str, arguments)]
    if not callable(entrypoint):
        raise ValueError(f"the entry point is a function or a program's name, not {entrypoint!r}")
    preparation = spawn.get_preparation_data("troupe worker")
    # It can only be pickled for a child of this process, which the worker is not.
    preparation["authkey"] = bytes(preparation["authkey"])
    try:
        call = pickle.dumps(preparation) + pickle.dumps((entrypoint, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as e:
        raise ValueError(f"the function and its arguments must be picklable: {e}") from e
    (directory / "call.pickle").write_bytes(call)
    return ["--", str(WORKER), str(directory)]


def name_of(entrypoint: Callable[..., Any] | str, arguments: tuple[Any, ...]) -> str:
    if not isinstance(entrypoint, str):
        return getattr(entrypoint, "__name__", type(entrypoint).__name__)
    if entrypoint != sys.executable:
        return entrypoint
    return next((str(a) for a in arguments if not str(a).startswith("-")), "")


def run(
    command: list[str], environment: dict[str, str], signals: str
) -> tuple[int, int | None]:
    """The launcher's exit code, and which of the signals came to this process meanwhile: they are passed on."""
    process = subprocess.Popen(command, env=environment, preexec_fn=bound_to(os.getpid()))
    with passing_on(signals, process) as got:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return code, got[0] if got else None


def bound_to(parent: int) -> Callable[[], None]:
    """For the child, before it runs the launcher: SIGTERM when this process is gone."""
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        os.setpgid(0, 0)  # so that Ctrl-C reaches the launcher once: from here
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return arrange


@contextlib.contextmanager
def passing_on(names: str, process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Hands the named signals to the launcher; yields those that came. Only the main thread can."""
    got: list[int] = []

    def pass_on(number: int, _: object) -> None:
        got.append(number)
        process.send_signal(number)

    numbers = [signal.Signals[name.strip()] for name in names.split(",") if name.strip()]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_outcome(directory: Path, code: int) -> dict[str, Any]:
    try:
        return json.loads((directory / "outcome.json").read_bytes())
    except FileNotFoundError:
        raise LauncherError(f"the launcher exited with {code}; its own message says why") from None


def results(
    entrypoint: Callable[..., Any] | str, outcome: dict[str, Any], directory: Path
) -> dict[int, Any]:
    if isinstance(entrypoint, str):
        return dict.fromkeys(outcome["ranks"])
    generation = outcome["generation"]
    return {
        rank: pickle.loads((directory / f"result-{generation}-{rank}.pickle").read_bytes())
        for rank in outcome["ranks"]
    }
