"""Nothing lies about: sources that are not built, headers that are not included, links that lead nowhere."""

import posixpath
import re
from typing import Iterator

from .layers import includes
from .project import Finding, Project, line_of

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def built_rule(project: Project) -> Iterator[Finding]:
    """Some CMakeLists.txt names every source: by its path from there or from the root, or by its stem in a foreach."""
    lists = {
        path.rpartition("/")[0]: project.text(path) for path in project.matching("CMakeLists.txt")
    }
    everything = "\n".join(lists.values())
    for path in project.matching(".cpp"):
        above = [folder for folder in lists if not folder or path.startswith(folder + "/")]
        stem = re.sub(r"(_test)?\.\w+$", "", path.rpartition("/")[2])
        if not (
            mentions(everything, path)
            or any(
                mentions(lists[folder], path.removeprefix(folder).lstrip("/")) for folder in above
            )
            or any(mentions(lists[folder], stem) for folder in above if "foreach" in lists[folder])
        ):
            yield Finding(path, 0, "is in no CMakeLists.txt, so it is not built")


def mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def included_rule(project: Project) -> Iterator[Finding]:
    included = {
        name
        for path in project.matching(".cpp", ".hpp", ".c")
        for _, name, ours in includes(project, path)
        if ours
    }
    for path in project.matching(".hpp"):
        if path not in included:
            yield Finding(path, 0, "no file includes this header")


def links_rule(project: Project) -> Iterator[Finding]:
    folders = {posixpath.dirname(path) for path in project.paths}
    folders |= {"/".join(f.split("/")[:n]) for f in set(folders) for n in range(f.count("/") + 1)}
    for path in project.matching(".md"):
        text = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), project.text(path))
        for found in LINK.finditer(text):
            target = found[1].partition("#")[0]
            if not target or ":" in target:
                continue
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).rstrip(
                "/"
            )
            if resolved not in project and resolved not in folders:
                yield Finding(
                    path, line_of(text, found.start()), f"the link to {found[1]} leads nowhere"
                )
