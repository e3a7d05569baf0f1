"""What must not be written, with the reason; comments and literals do not count."""

import re
from dataclasses import dataclass
from typing import Callable, Iterator

from .project import PURE, Finding, Project, is_core, is_pure, is_test, line_of


def everywhere(path: str) -> bool:
    return True


def deterministic(path: str) -> bool:
    """What the simulator replays from a seed."""
    return is_pure(path) or (
        path.startswith(("actors/", "tests/sim/", *PURE)) and not path.endswith("_test.cpp")
    )


def actors(path: str) -> bool:
    return path.startswith("actors/") and not is_test(path) or is_pure(path)


def product(path: str) -> bool:
    known = ("actors/", "ckpt/", "messages/", "runtime/", "worker/", "launch/keeper/")
    return path.startswith(known) and not is_test(path)


@dataclass(frozen=True)
class Ban:
    pattern: str
    where: Callable[[str], bool]
    reason: str


BANS = (
    Ban(r"\[=[\],]", everywhere, "captures are named one by one"),
    Ban(
        r"(?:\.|->|\b)(?:then|await|post|dispatch|defer|later|spawn|async_\w+)\s*\([^;{}]*\[&[\],]",
        everywhere,
        "a stored continuation outlives what [&] refers to; captures are named one by one",
    ),
    Ban(
        r"\bunordered_\w+",
        deterministic,
        "the order of iteration must not depend on hashes or addresses",
    ),
    Ban(
        r"\b(?:system|steady|high_resolution)_clock::now\b|\b(?:clock_gettime|gettimeofday|time\s*\(\s*(?:nullptr|NULL|0)\s*\))",
        deterministic,
        "time is an argument",
    ),
    Ban(r"\bsleep_(?:for|until)\b|\bu?sleep\s*\(", deterministic, "nothing waits by sleeping"),
    Ban(
        r"\bstd::(?:thread|jthread|async|future|promise|(?:\w+_)?mutex|condition_variable(?:_any)?)\b",
        actors,
        "threads belong to runtime/os",
    ),
    Ban(
        r"\brandom_device\b|\bmt19937\w*|\bs?rand\s*\(",
        deterministic,
        "randomness comes seeded, from runtime/base/random.hpp",
    ),
    Ban(
        r"\bcaf::actor\b",
        actors,
        "an untyped handle can be sent anything; use the protocol's handle",
    ),
    Ban(
        r"\bfor\s*\([^;()]*:\s*[\w.>-]*\bread\(\)\s*->",
        everywhere,
        "a for loop does not keep a message's view alive; name the view first",
    ),
    Ban(r"\bcaf::infinite\b", product, "every request has a deadline"),
    Ban(r"\bexit_reason::kill\b", actors, "only a supervisor's shutdown limit kills"),
    Ban(
        r"\busing\s+namespace\s+(?:caf|std|boost|kj|capnp)\s*;",
        everywhere,
        "foreign names are qualified",
    ),
    Ban(r"\bint\s+main\s*\(", product, "programs are in launch/mains"),
    Ban(
        r"\bstd::c(?:out|err)\b|\bv?f?printf\s*\(",
        product,
        "only the programs talk to the terminal; log through runtime/base/log.hpp",
    ),
)

TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")


def rule(project: Project) -> Iterator[Finding]:
    for path in project.sources():
        code = project.code(path)
        for ban in BANS:
            if ban.where(path):
                for found in re.finditer(ban.pattern, code):
                    yield Finding(
                        path,
                        line_of(code, found.end()),
                        f"`{found[0].split('(')[0].strip()}`: {ban.reason}",
                    )
        if path.endswith(".hpp") and not code.lstrip().startswith("#pragma once"):
            yield Finding(path, 1, "a header starts with #pragma once")


def todo_rule(project: Project) -> Iterator[Finding]:
    for path in project.matching(
        ".cpp", ".hpp", ".py", ".capnp", ".cmake", "CMakeLists.txt", "/run"
    ):
        if path.startswith("scripts/check"):
            continue
        for found in TODO.finditer(project.text(path)):
            yield Finding(
                path,
                line_of(project.text(path), found.start()),
                f"{found[0]} without an issue: {found[0]}(#12)",
            )
