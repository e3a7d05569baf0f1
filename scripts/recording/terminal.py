"""A shell in a tmux pane: what is typed, what stands on the screen, when a command has ended."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import machine

PATIENCE = 120.0


def until(condition: Callable[[], object], what: str, within: float = PATIENCE) -> object:
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(0.02)
    return value


class Terminal:
    """Each has a tmux server of its own, so that nothing of another one's settings counts."""

    def __init__(self, columns: int, lines: int, host: str = "node0", **variables: str) -> None:
        self.place = Path(tempfile.mkdtemp(dir="/mnt"))
        self.columns, self.lines = columns, lines
        self.ends = self.place / "ends"
        self.ends.touch()
        known = machine.environment() | variables
        shell = [
            "env", "-i", *(f"{name}={value}" for name, value in known.items()),
            "TERM=tmux-256color", "PS1=$ ", f"PROMPT_COMMAND=echo $? >>{self.ends}",
            "unshare", "--uts", "sh", "-c", f"hostname {host} && exec bash --norc --noprofile",
        ]  # fmt: skip
        self.tmux(
            "set", "-g", "status", "off", ";",
            "set", "-g", "history-limit", "5000", ";",
            "set", "-g", "default-terminal", "tmux-256color", ";",
            "new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", str(machine.JOB),
            shlex.join(shell),
        )  # fmt: skip
        until(lambda: self.commands_ended() == 1, "a prompt")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.tmux("kill-server")

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self.place / "socket"), "-f", "/dev/null", *arguments]
        # tmux draws for the terminal it is started in, and would take its size and its character set.
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(machine.HOME)}
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout

    def commands_ended(self) -> int:
        return len(self.ends.read_text().splitlines())

    def last_code(self) -> int:
        """The exit code of the command that has ended last."""
        return int(self.ends.read_text().split()[-1])

    def shell(self) -> int:
        """The process number of the shell."""
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", "--", text)

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def start(self, command: str) -> Callable[[], bool]:
        """Enters a command; the answer tells whether it has ended."""
        ended = self.commands_ended()
        if command:  # else it has been typed already
            self.type(command)
        self.press("Enter")
        return lambda: self.commands_ended() > ended

    def run(self, command: str) -> None:
        until(self.start(command), command)

    def rows(self) -> list[str]:
        """All rows since the beginning, those that have left the screen as well."""
        shown = self.tmux("capture-pane", "-p", "-S", "-")
        return [row.rstrip() for row in shown.rstrip("\n").split("\n")]

    def scrolled_rows(self) -> tuple[int, list[str]]:
        """How many rows have left the screen, and all rows with their colours."""
        size, _, shown = self.tmux(
            "display-message", "-p", "#{history_size}", ";", "capture-pane", "-p", "-e", "-S", "-"
        ).partition("\n")
        return int(size), [row.rstrip() for row in shown.rstrip("\n").split("\n")]

    def shows(self, words: str) -> bool:
        """Whether these words stand there, whatever a line's end cuts."""
        return words in self.tmux("capture-pane", "-p", "-J", "-S", "-")
