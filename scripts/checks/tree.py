"""Folders below actors/ = ids in actors/topology.cpp = rows of actors/README.md.

A folder that has only cores and their tests is not an actor yet: no tree has it."""

import re
from typing import Iterator

from .project import Finding, Project, is_core, is_test

TOPOLOGY, README = "actors/topology.cpp", "actors/README.md"
KEEPER = "launch/keeper/keeper.hpp"
STRATEGIES = "worker|child|dynamic|one_for_one|one_for_all|rest_for_one|one_fate"
# A comment `// children: session, one per …` names what a dynamic supervisor starts; `group/member` a
# supervisor and its children.
PART = re.compile(
    rf'\bsup::({STRATEGIES})\(\s*"(\w+)"|//\s*children:\s*([\w/]+)|//[^\n]*|"(?:\\.|[^"\\])*"|[()]'
)


def with_those_above(paths: list[str]) -> list[str]:
    """group/member stands for group as well."""
    parts = [path.split("/") for path in paths]
    return list(dict.fromkeys("/".join(p[:n]) for p in parts for n in range(1, len(p) + 1)))


def topology(project: Project) -> list[tuple[str, str]]:
    """(path, kind) of every node of both trees, parents first."""
    nodes: list[tuple[str, str]] = []
    open_calls: list[tuple[int, str]] = []  # (depth of its parenthesis, path)
    announced: list[str] = []
    depth = 0
    for part in PART.finditer(project.text(TOPOLOGY)):
        kind, name, children = part[1], part[2], part[3]
        if children:
            announced.append(children)
        elif kind:
            depth += 1
            path = f"{open_calls[-1][1]}/{name}" if open_calls else name
            nodes.append((path, kind))
            open_calls.append((depth, path))
            if kind == "dynamic":
                nodes += [(f"{path}/{child}", "child") for child in with_those_above(announced)]
                announced = []
        elif part[0] == "(":
            depth += 1
        elif part[0] == ")":
            if open_calls and open_calls[-1][0] == depth:
                open_calls.pop()
            depth -= 1
    return nodes


def folders(project: Project) -> set[str]:
    found = set()
    for path in project.matching("", under=("actors/",)):
        if is_core(path) or is_test(path):
            continue
        parts = path.split("/")[1:-1]
        found |= {"/".join(parts[:n]) for n in range(1, len(parts) + 1)}
    return found


def rows(project: Project) -> set[str]:
    return (
        set(re.findall(r"^\|\s*`([\w/]+)`\s*\|", project.text(README), re.M))
        if README in project
        else set()
    )


def rule(project: Project) -> Iterator[Finding]:
    if TOPOLOGY not in project:
        yield Finding(TOPOLOGY, 0, "does not exist yet, so the tree was not compared", fatal=False)
        return
    sources = {
        "folder": folders(project),
        TOPOLOGY: {path for path, _ in topology(project)},
        README: rows(project),
    }
    for node in sorted(set().union(*sources.values())):
        missing = [name for name, nodes in sources.items() if node not in nodes]
        if missing:
            yield Finding(
                "actors/" + node, 0, f"is in one place but missing as {' and '.join(missing)}"
            )


def render(project: Project) -> str:
    lines = []
    for path, kind in topology(project):
        # No actor, and the parent of this tree's process and of its workers.
        below = path.split("/")[0] == "node_supervisor" and KEEPER in project
        if below and "/" not in path:
            lines.append("keeper".ljust(28) + f"a process of its own, see {KEEPER}")
        depth = path.count("/") + below
        lines.append(
            f"{'  ' * depth}{path.rpartition('/')[2]}".ljust(28)
            + ("" if kind in ("worker", "child") else kind)
        )
    return "\n".join(line.rstrip() for line in lines)
