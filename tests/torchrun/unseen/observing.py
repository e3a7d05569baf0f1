"""How the cases of this folder say what they have seen: as JSON that is the same wherever and whenever it is made."""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def observed() -> dict[str, Any]:
    """By the name of each case. One that raises is seen by its traceback."""
    found = {}
    for name, function in CASES.items():
        sys.stderr.write(f"unseen: {name}\n")
        try:
            found[name] = function()
        except Exception as error:
            found[name] = {"raised": raised(error)}
    return found


def plain(text: str) -> str:
    """Without addresses, numbers of processes, and folders that differ."""
    text = re.sub(r"0x[0-9a-fA-F]+", "0x", text)
    text = re.sub(r"/tmp/\S*?(?=[\s'\"),]|$)", "/tmp/…", text)
    return re.sub(r"\d+\.\d+ ?m?s\b", "…s", text)


def place(path: str) -> str:
    """The last two parts of a file's name: enough to know whose it is."""
    return "/".join(PurePath(path).parts[-2:])


def frames(of: Any) -> list[str]:
    return [f"{place(each.filename)}:{each.lineno} {each.name}" for each in traceback.extract_tb(of)]


def raised(error: BaseException) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "text": plain(str(error)),
        "frames": frames(error.__traceback__),
        "cause": raised(error.__cause__) if error.__cause__ else None,
        "context": raised(error.__context__) if error.__context__ else None,
    }


def error_of(function: Callable[..., Any], *arguments: Any, **named: Any) -> dict[str, Any] | str:
    try:
        function(*arguments, **named)
    except BaseException as error:
        return raised(error)
    return "no error"


def bits(*tensors: Any) -> str:
    """A word that is another one if any bit is."""
    total = hashlib.sha256()
    for each in tensors:
        total.update(str(each.dtype).encode() + str(tuple(each.shape)).encode())
        total.update(each.detach().contiguous().view(-1).cpu().float().numpy().tobytes())
    return total.hexdigest()[:16]
