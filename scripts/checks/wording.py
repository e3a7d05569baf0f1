"""Prose says which component does what: no clause has `who`, `whoever`, `nobody`, `somebody` or `he` as its subject.

A reader who skims looks for the component's name. A sentence about `whoever` has none, and one about `he` has it in
another sentence. Looked at: comments, docstrings and literals of the sources, comments of schemas and scripts, and
pages without their code. What stands in `backticks` is quoted and does not count.
"""

import io
import re
import tokenize
from typing import Iterator

from .project import TOKENS, Finding, Project, line_of

# They quote what they look for.
EXEMPT = ("scripts/checks/wording.py", "scripts/checks_test.py")

# A person may be a `who`; a component is not.
PEOPLE = (
    "administrator attacker author engineer maintainer newcomer operator people person persons reader user"
).split()
WORD = r"(?<![\w./>:$-]){}(?![\w(/=]|\.\w|::|->|-\w)"
SUBJECT = re.compile(
    "|".join(
        (
            WORD.format(r"(?:[Ww]hoever|[Nn]obody|[Ss]omebody)"),
            rf"(?<!{'s )(?<!'.join(PEOPLE)}s )(?<!{' )(?<!'.join(PEOPLE)} )" + WORD.format("[Ww]ho"),
            WORD.format(r"(?:[Hh]e|[Hh]im|[Hh]is|[Hh]imself|[Ss]he)"),
        )
    )
)

FENCE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|^ {0,3}>[^\n]*", re.M | re.S)
QUOTED = re.compile(r"\{[\w.!:]*\}|``[^\n]+?``|`[^`\n]+`|\]\([^)\s]*\)|<https?:[^>\s]*>|https?://\S+")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.M)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")

CPP = (".cpp", ".hpp", ".c", ".h")
HASHED = (".capnp", ".cmake", "CMakeLists.txt", ".sh", "/run", "/x")


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def only(spans: list[tuple[int, int]], text: str) -> str:
    """The text with everything outside the spans blanked; offsets stay."""
    parts, at = [], 0
    for begin, end in spans:
        parts += [blank(text[at:begin]), text[begin:end]]
        at = end
    return "".join([*parts, blank(text[at:])])


def prose_of_cpp(text: str) -> str:
    text = INCLUDE.sub(lambda m: blank(m[0]), text)
    return only([m.span() for m in TOKENS.finditer(text)], text)


def prose_of_python(text: str) -> str:
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None)}
    spans = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in kinds:
                (row, column), (last_row, last_column) = token.start, token.end
                spans.append((begins[row - 1] + column, begins[last_row - 1] + last_column))
    except (tokenize.TokenError, SyntaxError):
        return text  # not Python yet: all of it
    return only(spans, text)


def prose_of_page(text: str) -> str:
    return FENCE.sub(lambda m: blank(m[0]), text)


def prose_with_hashes(text: str) -> str:
    return only([m.span() for m in HASH_COMMENT.finditer(text)], text)


def prose(project: Project, path: str) -> str | None:
    """What people read in a file, at its place; None for a file in which nothing can be found."""
    if path in EXEMPT or not SUBJECT.search(project.text(path)):
        return None
    for endings, reader in (
        (CPP, prose_of_cpp),
        ((".py",), prose_of_python),
        ((".md",), prose_of_page),
        (HASHED, prose_with_hashes),
    ):
        if ("/" + path).endswith(endings):
            return QUOTED.sub(lambda m: blank(m[0]), reader(project.text(path)))
    return None


def rule(project: Project) -> Iterator[Finding]:
    for path in project.paths:
        text = prose(project, path)
        for found in SUBJECT.finditer(text) if text else ():
            yield Finding(
                path,
                line_of(text, found.start()),
                f"'{found[0]}' is no component: name the one that is meant",
            )
