"""docs/troubleshooting.md and the messages of the programs are the same messages.

What the page quotes in the first column of its tables is said by some source; and each event that is a
warning or an error is on the page. `…` on the page stands for what differs.
"""

import ast
import re
from typing import Iterator

from . import event_reader
from .cpp_tokens import tokens_of
from .project import Finding, Project, is_test, line_of

PAGE = "docs/troubleshooting.md"
MESSAGES = re.compile(r"^\| (`.*?`(?:, `.*?`)*) \|", re.M)
QUOTED = re.compile(r"`([^`]+)`")
LIST_ITEM = re.compile(r"^- ((?:`[^`]+`(?:,\s+)?)+):", re.M)
FOLDERS = ("actors/", "ckpt/", "launch/", "messages/", "runtime/", "worker/", "python/troupe/")
# Said by the system, or put together of words that stand apart in the sources.
NOT_WHOLE = (
    *("Connection refused", "No route to host", "Host not found"),
    *("it did not get ready within", "it did not end its processes within"),
    *("cannot be synced", "not written before node", "not written within"),
    "libtroupe_ckpt.so is not in",
)
# The words are another part's, which the page has, or those of an exception.
WITHOUT_WORDS = ("no_store", "no_free_port", "checkpoint_warning", "actor_threw", "job_concluded")
SHORTEST = 4


def rule(project: Project) -> Iterator[Finding]:
    if PAGE in project:
        yield from quotes_of_nothing(project)
        yield from events_without_advice(project)


def quotes(page: str) -> Iterator[tuple[int, str]]:
    """(offset, message) of all that the page explains."""
    for found in (*MESSAGES.finditer(page), *LIST_ITEM.finditer(page)):
        for quoted in QUOTED.finditer(found[1]):
            yield found.start(1) + quoted.start(), " ".join(quoted[1].split())


def fixed_parts(message: str) -> list[str]:
    parts = (part.strip(" .,:;()'") for part in message.split("…"))
    return [part for part in parts if len(part) >= SHORTEST]


def quotes_of_nothing(project: Project) -> Iterator[Finding]:
    page = project.text(PAGE)
    said = "\n".join(literals(project))
    for at, message in quotes(page):
        for part in fixed_parts(message):
            if part not in said and part not in NOT_WHOLE:
                yield Finding(PAGE, line_of(page, at), f"no program says '{part}'")


def literals(project: Project) -> Iterator[str]:
    """All that the sources say, with `…` for what differs. Strings side by side are one."""
    for path in project.matching(".cpp", ".hpp", under=FOLDERS):
        if not is_test(path):
            for token in tokens_of(project.text(path)):
                if token.kind == "string":
                    yield re.sub(r"\{[^{}]*\}", "…", token.text)
    for path in project.matching(".py", under=FOLDERS):
        for node in ast.walk(ast.parse(project.text(path))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"%[sdr]", "…", node.value)


def events_without_advice(project: Project) -> Iterator[Finding]:
    explained = [fixed_parts(message) for _, message in quotes(project.text(PAGE))]
    for event in event_reader.events_of(project):
        if not {"warning", "error"} & set(event.level) or event.name in WITHOUT_WORDS:
            continue
        if not any(
            all(p in text for p in parts) for text in event.texts for parts in explained if parts
        ):
            yield Finding(
                event.path,
                event.line,
                f"{PAGE} does not explain '{event.texts[0]}'; no row there quotes a part of it",
            )
