"""What rules, boards and pages tell people to ask for is there: verbs of actor-shell, and metrics that are written."""

import re
from typing import Iterator

from .project import Finding, Project, is_test, line_of

OPTIONS = "launch/options/shell.cpp"
VERBS = re.compile(r'constexpr auto verbs = "([^"]*)"')
# As it is typed: behind a prompt, or as code in a text.
TYPED = re.compile(r"(?:`|\$ )actor-shell (?:--?[\w-]+(?:[ =][^ `-][^ `]*)? )*([a-z][\w-]*)")
MONITORING = "deploy/monitoring/"
METRIC = re.compile(r"\btroupe_\w+")
# What a histogram's samples are called besides.
PARTS = re.compile(r"_(bucket|sum|count)$")


def verbs_of(project: Project) -> set[str]:
    found = VERBS.search(project.text(OPTIONS))
    return {word.split()[0] for word in found[1].split(", ")} if found else set()


def rule(project: Project) -> Iterator[Finding]:
    if OPTIONS not in project:
        return
    verbs = verbs_of(project)
    for path in project.matching(".md", ".yml", ".yaml", ".json", ".cpp", ".hpp", ".py"):
        text = project.text(path)
        for found in () if is_test(path) or path.startswith("scripts/") else TYPED.finditer(text):
            if found[1] not in verbs:
                yield Finding(path, line_of(text, found.start()), f"actor-shell has no verb '{found[1]}'")
    written = set()
    for path in project.sources("metrics"):
        written |= set(re.findall(r'"(troupe_\w+)"', project.text(path)))
    for path in project.matching(".yml", ".json", under=(MONITORING,)):
        text = project.text(path)
        for found in METRIC.finditer(text):
            if PARTS.sub("", found[0]) not in written:
                yield Finding(path, line_of(text, found.start()), f"no program writes the metric {found[0]}")
