"""docs/troubleshooting.md and the messages of the programs are the same messages.

What the page quotes in the first column of its tables is said by some source; and each warning and
each error is on the page, of the programs and of the Python package. `…` on the page stands for what differs.
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
FOLDERS = ("actors/", "ckpt/", "diag/", "kube/", "launch/", "messages/", "runtime/", "worker/", "python/")
# Said by the system, or put together of words that stand apart in the sources.
NOT_WHOLE = (
    *("Connection refused", "No route to host", "Host not found"),
    *("it did not get ready within", "it did not end its processes within"),
    *("cannot be synced", "not written before node", "not written within"),
    "libtroupe_worker.so is not in",
)
# The words are another part's, which the page has.
WITHOUT_WORDS = ("checkpoint_warning", "job_concluded")
SHORTEST = 4
VARIES = event_reader.VARIES


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
                yield shown(node.value)


def shown(python: str) -> str:
    return re.sub(r"%[a-z]", VARIES, python)


def python_warnings(project: Project) -> Iterator[tuple[str, int, str]]:
    """(path, line, text) of each log.warning and log.error."""
    for path in project.matching(".py", under=("python/",)):
        for node in ast.walk(ast.parse(project.text(path))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("warning", "error")
                and getattr(node.func.value, "id", "") == "log"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield path, node.lineno, shown(node.args[0].value)


def events_without_advice(project: Project) -> Iterator[Finding]:
    quoted = [parts for _, message in quotes(project.text(PAGE)) if (parts := fixed_parts(message))]
    warnings = [
        (event.path, event.line, event.texts)
        for event in event_reader.events_of(project)
        if {"warning", "error"} & set(event.level) and event.name not in WITHOUT_WORDS
    ]
    warnings += [(path, line, (text,)) for path, line, text in python_warnings(project)]
    for path, line, texts in warnings:
        # A text without words of its own is another's, which is looked at where it is made.
        if texts[0] != VARIES and not any(
            all(part in text for part in parts) for text in texts for parts in quoted
        ):
            yield Finding(
                path,
                line,
                f"{PAGE} does not explain '{texts[0]}'; no row there quotes a part of it",
            )
