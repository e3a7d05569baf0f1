#!/usr/bin/env python3
"""Checks what the compiler does not: layers, tree = folders, sizes, bans, schemas, upkeep. See scripts/checks/.

Usage: check.py [--format] [--tree] [--update-schema-lock | --rewrite-schema-lock]

  --format                also check the formatting of the C++ sources
  --tree                  only print the supervision trees
  --update-schema-lock    remember new fields; refuses when a remembered one was removed or retyped
  --rewrite-schema-lock   forget the past: only for a new major version of the protocol
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True

from checks import (
    advice,
    bans,
    event_page,
    formatting,
    layers,
    local_messages,
    monitoring,
    schemas,
    sizes,
    tree,
    upkeep,
    variables,
    wording,
)
from checks.project import Project

RULES = (
    layers.rule,
    tree.rule,
    sizes.rule,
    bans.rule,
    bans.todo_rule,
    local_messages.rule,
    monitoring.rule,
    schemas.ids_rule,
    schemas.lock_rule,
    schemas.conversations_rule,
    upkeep.built_rule,
    upkeep.included_rule,
    upkeep.links_rule,
    wording.rule,
    event_page.rule,
    variables.rule,
    advice.rule,
)
OPTIONS = {"--format", "--tree", "--update-schema-lock", "--rewrite-schema-lock"}


def update_lock(project: Project, *, forget: bool) -> int:
    if schemas.LOCK in project and not forget and (bad := list(schemas.broken(project))):
        print(*bad, sep="\n")
        return 1
    (project.root / schemas.LOCK).write_text(schemas.rendered(project), encoding="utf-8")
    return 0


def main(arguments: list[str]) -> int:
    if unknown := set(arguments) - OPTIONS:
        print(f"unknown: {' '.join(sorted(unknown))}\n\n{__doc__}", file=sys.stderr)
        return 2
    project = Project.at(Path(__file__).resolve().parents[1])
    if "--tree" in arguments:
        print(tree.render(project))
        return 0
    if any(option.endswith("-schema-lock") for option in arguments):
        return update_lock(project, forget="--rewrite-schema-lock" in arguments)

    rules = RULES + ((formatting.rule,) if "--format" in arguments else ())
    findings = [finding for rule in rules for finding in rule(project)]
    print(*findings, sep="\n", end="\n" if findings else "")
    fatal = sum(finding.fatal for finding in findings)
    print(f"{len(project.paths)} files, {len(rules)} rules, {fatal} violations")
    return 1 if fatal else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
