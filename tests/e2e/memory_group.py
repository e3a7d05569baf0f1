"""A memory control group for one job, of either version, in which the kernel counts its kills."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True)
class MemoryGroup:
    path: Path
    version: int

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[MemoryGroup | None]:
        """None: this machine lets the test make none."""
        group = cls._below_own() or cls._below_unified()
        try:
            yield group
        finally:
            if group:
                group._remove()

    @classmethod
    def _below_own(cls) -> MemoryGroup | None:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            parent = Path("/sys/fs/cgroup/memory") / own.lstrip("/")
            if controllers == "memory" and parent.is_dir():
                return cls._tried(parent, "memory.limit_in_bytes", 1)
        return None

    @classmethod
    def _below_unified(cls) -> MemoryGroup | None:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, own = line.split(":", 2)
            parent = Path("/sys/fs/cgroup") / own.lstrip("/")
            # A group with processes of its own gives no controllers to groups below it, its parent may.
            for above in (parent, parent.parent) if (number, controllers) == ("0", "") else ():
                if found := cls._tried(above, "memory.max", 2):
                    return found
        return None

    @classmethod
    def _tried(cls, parent: Path, limit: str, version: int) -> MemoryGroup | None:
        path = parent / f"troupe-test-{uuid.uuid4().hex[:8]}"
        try:
            path.mkdir()
        except OSError:
            return None
        if (path / limit).exists():
            return cls(path, version)
        path.rmdir()
        return None

    def _remove(self) -> None:
        for _ in range(200):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.05)

    def used(self) -> int:
        """In bytes, without what the kernel can drop."""
        name, droppable = (
            ("memory.usage_in_bytes", "total_inactive_file")
            if self.version == 1
            else ("memory.current", "inactive_file")
        )
        lines = (self.path / "memory.stat").read_text().splitlines()
        stat = {key: int(value) for key, value in map(str.split, lines)}
        return int((self.path / name).read_text()) - stat[droppable]

    def limit(self, to: int) -> None:
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.path / name).write_text(str(to))

    def kills(self) -> int:
        """How many processes of the group the kernel has killed for lack of memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        lines = (self.path / name).read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == "oom_kill")

    def wrapped(self, program: str, place: Path) -> Path:
        """A program that does the same in this group."""
        place.write_text(
            f"#!/bin/sh\necho $$ > {shlex.quote(str(self.path / 'cgroup.procs'))}\n"
            f'exec {shlex.quote(program)} "$@"\n'
        )
        os.chmod(place, 0o755)
        return place
