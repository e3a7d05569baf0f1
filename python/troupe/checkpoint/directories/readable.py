"""Whether the files of a checkpoint's directory are as they were written."""

from __future__ import annotations

import mmap
import os
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

from ..contents import files_of_list, is_list_name
from ..files import open_regular
from ..library import CheckpointError
from .safetensors import header_of

PIECE, READERS = 16 << 20, 8  # bytes that are read at once, and files


def require_readable(directory: str) -> None:
    """Raises CheckpointError that names the file if one of a checkpoint was cut short, or is none of its kind."""
    if not os.path.isdir(directory):
        raise CheckpointError(f"{directory} is no directory with a checkpoint")
    for above, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(above, name)
            if why := _wrong(path):
                raise CheckpointError(f"{path}: {why}")


def require_whole(directory: str, checksums: bool = True) -> None:
    """Raises CheckpointError that names the file if one of a complete step is not as it was written, or of a checkpoint that others
    have written, as `require_readable` does. Without `checksums` only sizes are looked at."""
    require_readable(directory)
    lists = [name for name in sorted(os.listdir(directory)) if is_list_name(name)]
    rows = [row for name in lists for row in _listed(os.path.join(directory, name))]
    with ThreadPoolExecutor(READERS) as readers:  # zlib lets go of the interpreter
        why = readers.map(lambda row: _not_as_written(os.path.join(directory, row[0]), row[1], row[2] if checksums else None), rows)
        for (name, *_), reason in zip(rows, why, strict=True):
            if reason:
                raise CheckpointError(f"{os.path.join(directory, name)}: {reason}")


def _listed(path: str) -> list[tuple[str, int, int]]:
    try:
        with open_regular(path) as file:
            return files_of_list(file.read())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _not_as_written(path: str, size: int, crc32: int | None) -> str:
    try:
        with open_regular(path) as file:
            has, found = os.fstat(file.fileno()).st_size, 0
            if has != size:
                return f"it has {has} bytes, and {size} were written"
            while crc32 is not None and (piece := file.read(PIECE)):
                found = zlib.crc32(piece, found)
    except OSError as error:
        return error.strerror or str(error)
    return "" if crc32 in (None, found) else "it is damaged: its checksum is not that of what was written"


def _wrong(path: str) -> str:
    try:
        if path.endswith(".safetensors"):
            with open_regular(path) as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return "it is empty"
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    header_of(content)
        elif path.endswith((".pt", ".pth")) and not zipfile.is_zipfile(path):
            return "it is no file of torch.save, or was cut short"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
