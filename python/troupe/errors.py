"""How a launch fails: torch's exceptions by shape, and torch's own classes where torch is loaded.

`except` can only name torch's class after torch was imported, so these functions look at what is
loaded already and never import it.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

NOT_AVAILABLE = "<N/A>"
WIDEST_RULE = 60


class LauncherError(RuntimeError):
    """The launcher did not get as far as running workers; the text says why."""


@dataclass
class ProcessFailure:
    """One failed worker, with the fields of torch's ProcessFailure and the host it ran on.

    `exitcode`: negative for a signal. `timestamp`: seconds since the epoch. `error_file`: a path on the worker's
    own host, or "<N/A>". `message`: the text, or the object `@record` wrote.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(default_factory=dict)
    message: str | dict[str, Any] = ""
    timestamp: int = 0
    host: str = ""

    def signal_name(self) -> str:
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else NOT_AVAILABLE
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Workers failed and no restart was left; the fields and the text of torch's ChildFailedError.

    `name`: of the entry point. `failures`: by global rank, those of other nodes included, root cause first.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = failures
        Exception.__init__(self, self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Rank and failure of the root cause."""
        return next(iter(self.failures.items()))

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        blocks = [block(i, rank, f) for i, (rank, f) in enumerate(self.failures.items())]
        title = f"{self.name} FAILED"
        width = min(WIDEST_RULE, max(map(len, "\n".join([title, *blocks]).split("\n"))))
        thick, thin = boarder_delim * width, section_delim * width
        others = blocks[1:] or ["  <NO_OTHER_FAILURES>"]
        return "\n".join(
            ["", thick, title, thin, "Failures:", *others]
            + [thin, "Root Cause (first observed failure):", blocks[0], thick]
        )


class SignalException(Exception):
    """This process was told to end by a signal, and so were the workers. `sigval`: which."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        Exception.__init__(self, msg)
        self.sigval = sigval


def block(index: int, rank: int, failure: ProcessFailure) -> str:
    """One failure as torchrun prints it."""
    text = failure.message
    if isinstance(text, Mapping):
        stack = text.get("extraInfo", {}).get("py_callstack", text.get("message", NOT_AVAILABLE))
        text = stack.replace("\n", "\n  ")
    named = f" ({failure.signal_name()})" if failure.signal_name() != NOT_AVAILABLE else ""
    return (
        f"[{index}]:\n"
        f"  time      : {failure.timestamp_isoformat()}\n"
        f"  host      : {failure.host}\n"
        f"  rank      : {rank} (local_rank: {failure.local_rank})\n"
        f"  exitcode  : {failure.exitcode} (pid: {failure.pid}){named}\n"
        f"  error_file: {failure.error_file}\n"
        f"  traceback : {text}"
    )


def child_failed(name: str, failures: list[dict[str, Any]]) -> ChildFailedError:
    """The exception for the failures in a launcher's outcome, root cause first."""
    shape = torch_shaped(ChildFailedError, "torch.distributed.elastic.multiprocessing.errors")
    return shape(name, {f["rank"]: process_failure(f) for f in failures})


def signalled(number: int, pid: int) -> SignalException:
    which = signal.Signals(number)
    shape = torch_shaped(SignalException, "torch.distributed.elastic.multiprocessing.api")
    return shape(f"Process {pid} got signal: {which}", which)


def torch_shaped(ours: type, module: str) -> type:
    """A class that is both ours and torch's of the same name, if torch's module is loaded."""
    theirs = getattr(sys.modules.get(module), ours.__name__, None)
    return type(ours.__name__, (ours, theirs), {}) if theirs else ours


def process_failure(f: Mapping[str, Any]) -> ProcessFailure:
    """`f`: rank, local_rank, node, pid, exit_code, unix_time_ms, error_file, message."""
    written = error_file_content(f["error_file"])
    failure = ProcessFailure(
        local_rank=f["local_rank"],
        pid=f["pid"],
        exitcode=f["exit_code"],
        error_file=f["error_file"] or NOT_AVAILABLE,
        error_file_data=written or {"message": "<NONE>"},
        message=written.get("message", f["message"]),
        timestamp=f["unix_time_ms"] // 1000 or int(time.time()),
        host=f["node"],
    )
    if not written and f["pid"] and ": " not in f["message"]:  # the end is all that is known
        failure.message = (
            f"Signal {-failure.exitcode} ({failure.signal_name()}) received by PID {failure.pid}"
            if failure.exitcode < 0
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
    return failure


def error_file_content(path: str) -> dict[str, Any]:
    """What `@record` wrote, or nothing: no file, a file of another host, or not its format."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and "message" in content else {}
