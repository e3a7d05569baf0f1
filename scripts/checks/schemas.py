"""Schemas only grow: every field that was ever released stays, with its number and type.

`messages/schema.lock` remembers them, one line each: `file struct.path @number type name`.
"""

import re
from typing import Iterator

from .project import Finding, Project, line_of

LOCK = "messages/schema.lock"
ID = re.compile(r"@0x([0-9a-f]{16})\b")
TOKEN = re.compile(
    r"\b(?:(struct|enum|interface)\s+(\w+)|(\w+)\s*:\s*(union|group)|(union))[^{;]*\{|"
    r"\b(\w+)\s*@(\d+)\s*(?::\s*([^;={]+?))?\s*(?:=[^;]*)?(?:\$[^;]*)?;|\}"
)


def schema_files(project: Project) -> list[str]:
    return list(project.matching(".capnp", under=("messages/",)))


def members(project: Project, path: str) -> dict[tuple[str, str, int], tuple[str, str, int]]:
    """(file, struct path, number) -> (type, name, line) of every field and enumerant."""
    text = re.sub(r"#[^\n]*", "", project.text(path))
    found: dict[tuple[str, str, int], tuple[str, str, int]] = {}
    inside: list[str] = []
    for token in TOKEN.finditer(text):
        _, named, grouped, _, _, member, number, kind = token.groups()
        if member:
            key = (path, ".".join(n for n in inside if n), int(number))
            found[key] = (
                re.sub(r"\s+", "", kind or "enumerant"),
                member,
                line_of(text, token.start()),
            )
        elif token[0] == "}":
            if inside:
                inside.pop()
        else:
            # Numbers of a union's or group's members belong to the struct around it.
            inside.append(named or "")
    return found


def locked(project: Project) -> dict[tuple[str, str, int], tuple[str, str]]:
    entries = {}
    for line in project.text(LOCK).splitlines():
        if line and not line.startswith("#"):
            path, struct, number, kind, name = line.split()
            entries[path, struct, int(number.removeprefix("@"))] = (kind, name)
    return entries


def rendered(project: Project) -> str:
    lines = [
        "# Every field and enumerant ever released; scripts/check.py --update-schema-lock appends to it."
    ]
    for path in schema_files(project):
        lines += [
            f"{p} {struct} @{number} {kind} {name}"
            for (p, struct, number), (kind, name, _) in sorted(members(project, path).items())
        ]
    return "\n".join(lines) + "\n"


def ids_rule(project: Project) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for path in schema_files(project):
        text = re.sub(r"#[^\n]*", "", project.text(path))
        if not ID.match(text.lstrip()):
            yield Finding(path, 1, "a schema starts with its file id (`capnp id`)")
        for found in ID.finditer(text):
            if found[1] in seen:
                yield Finding(
                    path,
                    line_of(text, found.start()),
                    f"id 0x{found[1]} is already used in {seen[found[1]]}",
                )
            seen[found[1]] = path


def broken(project: Project) -> Iterator[Finding]:
    """Locked members that are gone or have become something else."""
    now = {
        key: value
        for path in schema_files(project)
        for key, value in members(project, path).items()
    }
    for key, (kind, name) in locked(project).items():
        path, struct, number = key
        if key not in now:
            yield Finding(
                path, 0, f"{struct}.{name} @{number} was removed; retired fields stay, marked"
            )
        elif now[key][0] != kind:
            yield Finding(
                path, now[key][2], f"{struct}.{name} @{number} was {kind} and is now {now[key][0]}"
            )


def lock_rule(project: Project) -> Iterator[Finding]:
    if not schema_files(project):
        return
    if LOCK not in project:
        yield Finding(LOCK, 0, "missing; scripts/check.py --update-schema-lock writes it")
        return
    bad = list(broken(project))
    yield from bad
    if not bad and rendered(project) != project.text(LOCK):
        yield Finding(LOCK, 0, "is behind the schemas; run scripts/check.py --update-schema-lock")


def conversations_rule(project: Project) -> Iterator[Finding]:
    """A conversation has a section in docs/protocol.md, and a transcript or fuzz target where those folders exist."""
    if "docs/protocol.md" not in project:
        return
    headings = "\n".join(re.findall(r"^#+ .*$", project.text("docs/protocol.md"), re.M)).lower()
    for path in schema_files(project):
        found = re.search(r"^# Conversation: (\w+)", project.text(path), re.M)
        if found is None:
            continue
        if found[1].lower() not in headings:
            yield Finding(
                path, 0, f"docs/protocol.md has no section on the conversation {found[1]}"
            )
        for folder in ("tests/transcripts", "tests/fuzz"):
            files = list(project.matching("", under=(folder + "/",)))
            if files and not any(
                found[1] in file or found[1] in project.text(file) for file in files
            ):
                yield Finding(path, 0, f"{folder} does not cover the conversation {found[1]}")
