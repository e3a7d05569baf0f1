"""What one actor says to another is a schema's message, or carries one or a handle."""

import re
from typing import Iterator

from .project import Finding, Project, is_test, line_of

ANNOUNCED = re.compile(r"\bTROUPE_LOCAL_MESSAGE\(\s*(?:\w+::)*(\w+)\s*\)")
# A schema cannot hold these: an address in this process, and a message that is passed on as it is.
CARRIED = re.compile(r"\bhandle\b|\baddress<|\bany_msg\b|\bmsg<")


def rule(project: Project) -> Iterator[Finding]:
    """A struct that a header announces is seen by other actors; one in a .cpp goes to oneself."""
    for path in project.sources():
        if not path.startswith("actors/") or not path.endswith(".hpp") or is_test(path):
            continue
        code = project.code(path)
        for announced in ANNOUNCED.finditer(code):
            body = re.search(rf"\bstruct {announced[1]} \{{(.*?)\n?\}};", code, re.S)
            if body is None or not CARRIED.search(body[1]):
                yield Finding(
                    path,
                    line_of(code, announced.start()),
                    f"`{announced[1]}` is told to other actors: it belongs into a schema, unless "
                    "it carries a handle or a message",
                )
