"""A part of memory as a file that is read, for torch.load: nothing is copied but what is asked for."""

from __future__ import annotations

import io
import os


class Window(io.RawIOBase):
    def __init__(self, memory: memoryview):
        super().__init__()
        self._memory, self._at = memory, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._memory)}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        part = self._memory[self._at : self._at + len(buffer)]
        memoryview(buffer).cast("B")[: len(part)] = part
        self._at += len(part)
        return len(part)
