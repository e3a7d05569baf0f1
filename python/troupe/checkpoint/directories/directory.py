"""Files of a snapshot as a directory that a framework reads, without a disk.

Frameworks load from paths. Each file is memory of its own here (memfd), and the directory has links to it: that is a copy of the
snapshot in memory, made once on each node, until training has taken what it needs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping


class Directory:
    """`path`: for all processes of this node, until `close`."""

    def __init__(self, files: Mapping[str, memoryview], path: str = ""):
        """`path`: another process's, to which these files are added. Raises OSError if there is no memory for them."""
        self._descriptors: list[int] = []
        self._own = not path
        self.path = path or tempfile.mkdtemp(prefix="troupe-snapshot-")
        try:
            for name, content in files.items():
                self._add(name, content)
        except BaseException:
            self.close()
            raise

    def _add(self, name: str, content: memoryview) -> None:
        descriptor = os.memfd_create("troupe-file", os.MFD_CLOEXEC)
        self._descriptors.append(descriptor)
        at = 0
        while at < len(content):
            at += os.write(descriptor, content[at : at + (64 << 20)])
        link = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(f"/proc/{os.getpid()}/fd/{descriptor}", link)

    def name_only(self, names: Iterable[str]) -> None:
        """Empty files, for frameworks that look whether files are there that they do not read. Raises OSError."""
        for name in names:
            path = os.path.join(self.path, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb"):
                pass

    def close(self) -> None:
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()
        if self._own:
            shutil.rmtree(self.path, ignore_errors=True)
