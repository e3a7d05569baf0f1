"""docs/events.md lists every event of the sources: its tables are what this module writes.

By hand on that page: how a line looks, and what each field means. A field without a meaning, or a
meaning without a field, is a finding.
"""

import re
from typing import Iterator

from . import event_reader
from .blocks import replaced
from .cpp_tokens import tokens_of
from .event_reader import Event, Unclear
from .project import Finding, Project, line_of

PAGE = "docs/events.md"
BLOCK = "events"
# The component of what is no actor, and the heading of its table.
OTHERS = {
    "launch/mains": ("The programs", "actor-launcher`, `actor-master` or `master"),
    "launch/wiring": ("The programs", "actor-launcher`, `actor-master` or `master"),
    "kube": ("Kubernetes", "kubernetes"),
    "launch/keeper": ("Processes of a node", "processes` or `store"),
    "runtime/os/copies": ("Copies at other nodes, where they are held", "replication_target"),
    "ckpt/copies": ("Copies at other nodes, where they are held", "replication_target"),
    "runtime/os/journal": ("The journal's file", "master"),
    "runtime/os/log": ("The log itself", "log"),
    "runtime/os/net": ("Connections", "link"),
    "runtime/os/tcpstore": ("The workers' store", "store"),
    "runtime/sup": ("Any actor", "…"),
}
# Actors of which there are several: one has its number or name behind it.
SEVERAL = ("generation", "session", "member")
FIELD_ROW = re.compile(r"^\| `(\w+)` \| (string|integer|number|boolean) \|", re.M)


def heading(folder: str) -> tuple[str, str]:
    """(what the table is called, the value of `component` in its lines)."""
    if not folder.startswith("actors/"):
        return OTHERS.get(folder, (folder, folder))
    parts = folder.split("/")[1:]
    path = "/".join(f"{part} …" if part in SEVERAL else part for part in parts)
    title = "The master" if parts[0] == "master" else "The node"
    path = path.removesuffix("/worker") + "/rank …" if parts[-1] == "worker" else path
    return f"{title}: {parts[-1].replace('_', ' ')}", path


def raised(project: Project) -> set[str]:
    """Which information is a notice on a node that runs no master: there no other line says it."""
    for path in project.sources("launch/wiring"):
        if found := re.search(r"notices_of_a_node\{(.*?)\}", project.text(path), re.S):
            return {t.text for t in tokens_of(found[1].replace(",", " , ")) if t.kind == "string"}
    return set()


def merged(events: list[Event]) -> dict[tuple[str, str], dict[str, list[Event]]]:
    tables: dict[tuple[str, str], dict[str, list[Event]]] = {}
    for event in events:
        tables.setdefault(heading(event.folder), {}).setdefault(event.name, []).append(event)
    # The master's actors, the node's, then the rest.
    order = sorted(
        tables,
        key=lambda h: (not h[0].startswith("The master:"), not h[0].startswith("The node:"), h),
    )
    return {h: tables[h] for h in order}


def in_cell(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"


def row(name: str, events: list[Event], notices: set[str]) -> str:
    levels = list(dict.fromkeys(level for e in events for level in e.level))
    if name in notices and levels == ["info"]:
        levels = ["info*"]
    fields = dict.fromkeys(field for e in events for field, _ in e.fields)
    texts = list(dict.fromkeys(t for e in events for t in e.texts))
    return (
        f"| `{name}` | {', '.join(levels)} | {', '.join(f'`{f}`' for f in fields) or '–'} "
        f"| {' or '.join(map(in_cell, texts))} |"
    )


def rendered(project: Project) -> str:
    notices = raised(project)
    lines = []
    for (title, component), names in merged(event_reader.events_of(project)).items():
        lines += [f"### {title}", "", f"`component`: `{component}`", ""]
        lines += ["| event | level | fields | text |", "|---|---|---|---|"]
        lines += [row(name, names[name], notices) for name in sorted(names)]
        lines.append("")
    return "\n".join(lines)


def rewritten(project: Project) -> str:
    return replaced(project.text(PAGE), BLOCK, rendered(project))


def rule(project: Project) -> Iterator[Finding]:
    if PAGE not in project:
        return
    try:
        if rewritten(project) != project.text(PAGE):
            yield Finding(PAGE, 0, "is not what the sources say; run ./x docs")
        yield from fields_without_meaning(project)
    except Unclear as why:
        path, line, what = str(why).split(":", 2)
        yield Finding(path, int(line), what.strip())


def fields_without_meaning(project: Project) -> Iterator[Finding]:
    page = project.text(PAGE)
    explained = {m[1]: (m[2], line_of(page, m.start())) for m in FIELD_ROW.finditer(page)}
    used: dict[str, set[str]] = {}
    for event in event_reader.events_of(project):
        for name, kind in event.fields:
            used.setdefault(name, set()).add(kind)
            if name not in explained:
                yield Finding(
                    event.path, event.line, f"{PAGE} does not say what the field `{name}` is"
                )
    for name, (kind, line) in explained.items():
        if used.get(name) != {kind}:
            is_now = ", ".join(sorted(used.get(name, {"not there"})))
            yield Finding(PAGE, line, f"the field `{name}` is no {kind}: it is {is_now}")
