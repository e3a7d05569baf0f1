"""Every variable of the environment that is ours stands on the page of the configuration."""

import re
from typing import Iterator

from .project import Finding, Project, is_test, line_of

PAGE = "docs/configuration.md"
OURS = re.compile(r'"(TROUPE_[A-Z_]+)"')


def rule(project: Project) -> Iterator[Finding]:
    if PAGE not in project:
        return
    page = project.text(PAGE)
    for path in project.matching(
        ".cpp", ".hpp", ".py", under=("launch/", "runtime/", "worker/", "python/troupe/", "python/dlrover_names/")
    ):
        for found in () if is_test(path) else OURS.finditer(project.text(path)):
            if f"`{found[1]}`" not in page:
                line = line_of(project.text(path), found.start())
                yield Finding(path, line, f"{PAGE} does not name the variable {found[1]}")
