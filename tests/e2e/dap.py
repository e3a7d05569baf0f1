"""An editor, as debugpy's adapter sees it: a client of the Debug Adapter Protocol with one session for each process."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

WITHIN = 60.0
Message = dict[str, Any]


class Session:
    """One conversation with the adapter, about one process."""

    def __init__(self, takes: BinaryIO, gives: BinaryIO):
        self._to, self._from = takes, gives
        self._numbers = itertools.count(1)
        self._came: queue.Queue[Message | None] = queue.Queue()
        self._seen: list[Message] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while header := self._from.readline():
                length = int(header.split(b":")[1])
                self._from.readline()
                self._came.put(json.loads(self._from.read(length)))
        except (OSError, ValueError):  # it was closed in the middle
            pass
        finally:
            self._came.put(None)

    def ask(self, command: str, **arguments: Any) -> int:
        """Sends a request; the answer's `request_seq` is the number that is returned."""
        number = next(self._numbers)
        request = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._to.flush()
        return number

    def next(self, **wanted: Any) -> Message:
        """The first message, of those not taken yet, that has these fields; in the order in which they came."""
        passed_over: list[Message] = []
        try:
            while True:
                message = self._seen.pop(0) if self._seen else self._came.get(timeout=WITHIN)
                if message and all(message.get(key) == value for key, value in wanted.items()):
                    return message
                if message is None or message.get("event") == "terminated":
                    raise EOFError(f"the session has ended before {wanted}, after {passed_over}")
                if message.get("success") is False:
                    raise RuntimeError(f"{message['command']}: {message['message']}")
                passed_over.append(message)
        except queue.Empty:
            raise TimeoutError(f"no {wanted} within {WITHIN:g} s, but {passed_over}") from None
        finally:
            self._seen = passed_over + self._seen

    def answer(self, number: int) -> Message:
        return self.next(type="response", request_seq=number, success=True).get("body") or {}

    def call(self, command: str, **arguments: Any) -> Message:
        return self.answer(self.ask(command, **arguments))

    def event(self, name: str) -> Message:
        return self.next(type="event", event=name).get("body") or {}

    def output(self) -> str:
        """What the program and the debugger have written, as far as it was met by a `next` that looked for something else."""
        said = [m["body"] for m in self._seen if m.get("event") == "output"]
        return "".join(each["output"] for each in said if each["category"] != "telemetry")

    def begin(self, how: str, configuration: Message, breakpoints: dict[str, list[int]]) -> None:
        """Launches a program or attaches to one, and lets it run with these breakpoints: lines by file."""
        self.call("initialize", adapterID="debugpy", pathFormat="path", linesStartAt1=True)
        begun = self.ask(how, **configuration)
        self.next(type="event", event="initialized")
        for file, lines in breakpoints.items():
            places = [{"line": line} for line in lines]
            self.call("setBreakpoints", source={"path": file}, breakpoints=places)
        self.call("configurationDone")
        self.answer(begun)

    def stopped_at(self) -> tuple[int, Message]:
        """Waits for a breakpoint; thread and innermost frame."""
        thread = self.event("stopped")["threadId"]
        return thread, self.call("stackTrace", threadId=thread)["stackFrames"][0]


@contextlib.contextmanager
def adapter(python: str, environment: dict[str, str]) -> Iterator[Session]:
    """debugpy's adapter, as an editor starts it. What it has started ends with it."""
    process = subprocess.Popen(
        [python, "-m", "debugpy.adapter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        yield Session(process.stdin, process.stdout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def attached(told: Message, breakpoints: dict[str, list[int]]) -> Session:
    """The session of a process that the adapter has told of by `debugpyAttach`."""
    where = told["connect"]
    connection = socket.create_connection((where["host"], where["port"]), timeout=WITHIN)
    connection.settimeout(None)
    stream = connection.makefile("rwb")
    session = Session(stream, stream)
    session.begin("attach", told, breakpoints)
    return session
