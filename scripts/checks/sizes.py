"""Size as a smell. A file past its bound is split along a seam, or an ADR that names the file says why not."""

from typing import Iterator

from .project import Finding, Project, is_core, is_pure, is_test

FILE_MAX, CORE_MAX, SHELL_MAX = 500, 400, 250


def rule(project: Project) -> Iterator[Finding]:
    adrs = "\n".join(project.text(p) for p in project.matching(".md", under=("docs/adr/",)))
    for path in project.matching(".cpp", ".hpp", ".py", ".capnp", ".cmake", "CMakeLists.txt", "x"):
        if path.endswith("x") and path != "x":
            continue
        lines = project.text(path).count("\n")
        bound = CORE_MAX if is_pure(path) else FILE_MAX
        if lines > bound and path not in adrs:
            yield Finding(
                path, 0, f"{lines} lines; {bound} are allowed unless an ADR names the file"
            )
        elif (
            lines > SHELL_MAX
            and path.startswith("actors/")
            and not is_core(path)
            and not is_test(path)
        ):
            yield Finding(
                path, 0, f"{lines} lines; a shell should do with {SHELL_MAX}", fatal=False
            )
