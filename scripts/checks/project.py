"""The files of the repository as the rules see them."""

import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Iterator, Mapping

TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S
)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {'' if self.fatal else 'warning: '}{self.text}"


class Project:
    """Paths are relative to the root, with forward slashes; text is read when it is first asked for."""

    def __init__(
        self, paths: list[str], texts: Mapping[str, str], root: Path | None = None
    ) -> None:
        self.root = root
        self.paths = sorted(paths)
        self._texts = dict(texts)
        self._code: dict[str, str] = {}

    @classmethod
    def at(cls, root: Path) -> "Project":
        """What git tracks or would track; build outputs are ignored there and so they are here."""
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-coz", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
        return cls([p for p in set(listed) if p and (root / p).is_file()], {}, root)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "Project":
        return cls(list(texts), texts)

    def __contains__(self, path: str) -> bool:
        return path in self._known

    @cached_property
    def _known(self) -> set[str]:
        return set(self.paths)

    def text(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def code(self, path: str) -> str:
        """C++ text with comments and literals blanked; every line keeps its number."""
        if path not in self._code:
            self._code[path] = TOKENS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), self.text(path))
        return self._code[path]

    def matching(self, *endings: str, under: tuple[str, ...] = ("",)) -> Iterator[str]:
        for path in self.paths:
            if path.endswith(endings) and path.startswith(under):
                yield path

    def sources(self, *under: str) -> Iterator[str]:
        return self.matching(".cpp", ".hpp", under=under or ("",))


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def is_test(path: str) -> bool:
    """Test code may use what the tests folder offers; nothing else may."""
    return path.startswith("tests/") or path.endswith("_test.cpp") or "/testing/" in path


# All of them decide and compute; what they need of the world they are given, or have by a port.
PURE = ("ckpt/", "runtime/tcpstore/", "runtime/link/", "topology/", "metrics/", "kube/")


def is_pure(path: str) -> bool:
    """No threads, clocks, chance or I/O: a core, or in a folder that is nothing else."""
    return is_core(path) or path.startswith(PURE) and not is_test(path)


def is_core(path: str) -> bool:
    return (
        path.startswith(("actors/", "runtime/", "ckpt/", "launch/keeper/"))
        and bool(re.search(r"_core(_\w+)?\.[ch]pp$", path))
        and not is_test(path)
    )
