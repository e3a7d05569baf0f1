"""C++ is formatted by clang-format 14 and by no other version."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Iterator

from .project import Finding, Project

TOOL = "clang-format-14"


def rule(project: Project) -> Iterator[Finding]:
    if shutil.which(TOOL) is None:
        yield Finding(".clang-format", 0, f"{TOOL} is not installed (./x setup)")
        return
    files = list(project.sources())
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        outputs = pool.map(
            lambda n: dry_run(project, files[n::workers]), range(min(workers, len(files)))
        )
    seen = set()
    for output in outputs:
        for path, line in re.findall(
            r"^(\S+?):(\d+):\d+: (?:error|warning): code should be clang-formatted", output, re.M
        ):
            if path not in seen:
                seen.add(path)
                yield Finding(path, int(line), "is not formatted; run ./x fmt")


def dry_run(project: Project, files: list[str]) -> str:
    return subprocess.run(
        [TOOL, "--dry-run", "--ferror-limit=1", *files],
        cwd=project.root,
        capture_output=True,
        text=True,
    ).stderr
