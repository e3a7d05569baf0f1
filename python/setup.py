"""A wheel that carries the native program, and all that it needs and glibc does not bring.

`./x wheel` puts an installed tree beside this file, as `prefix`: its `bin` goes where the interpreter's scripts are, the rest
beside that. An editable install takes the program of the checkout instead and needs none.
"""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

from distutils.command.build_scripts import build_scripts  # after setuptools, which provides it

HERE = Path(__file__).resolve().parent
PROGRAM = "actor-troupe"  # the name that no other project has: its command `troupe` may replace ours
PREFIX = Path("prefix")  # as seen from here: setuptools takes no other paths
HAS_PROGRAM = (HERE / PREFIX / "bin" / PROGRAM).is_file()
# A wheel cannot hold links. Each takes the time of a shell, half a millisecond.
LINK = '#!/bin/sh\nexec "${0%%/*}/actor-troupe" %s"$@"\n'
LINKS = {
    "actor-launcher": "run ",
    "actor-master": "master ",
    "actor-operator": "operator ",
    "actor-shell": "shell ",
    "actor-stacks": "stacks ",
    "troupe": "",
    "troupe-dump": "dump ",
    "troupe-probe": "probe ",
}


def version() -> str:
    for folder in (HERE.parent, HERE):
        if (folder / "VERSION").is_file():
            return (folder / "VERSION").read_text().strip()
    raise SystemExit("there is no file VERSION beside python/ or in it: build from a whole checkout")


def programs() -> list[str]:
    return [str(PREFIX / "bin" / PROGRAM), *LINKS] if HAS_PROGRAM else []


def beside_them() -> list[tuple[str, list[str]]]:
    paths = [p for folder in ("libexec", "share") for p in sorted((PREFIX / folder).rglob("*"))]
    # Of a library only the name that is looked for: a wheel would hold the link's target twice.
    behind_links = {path.parent / path.readlink() for path in paths if path.is_symlink()}
    files: dict[str, list[str]] = {}
    for path in paths:
        if path.is_file() and path not in behind_links:
            files.setdefault(str(path.parent.relative_to(PREFIX)), []).append(str(path))
    return sorted(files.items())


class CopyPrograms(build_scripts):
    """setuptools would look for a `#!` line, as if the program were text."""

    def copy_scripts(self) -> tuple[list[str], list[str]]:
        self.mkpath(self.build_dir)
        copies = [os.path.join(self.build_dir, Path(script).name) for script in self.scripts]
        for script, copy in zip(self.scripts, copies, strict=True):
            if script in LINKS:
                Path(copy).write_text(LINK % LINKS[script])
            else:
                self.copy_file(script, copy)
            os.chmod(copy, 0o755)
        return copies, copies


class PlatformWheel(bdist_wheel):
    """Any Python, but only this kind of machine."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = not self.distribution.scripts

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", os.environ.get("TROUPE_PLATFORM") or super().get_tag()[2]

    def run(self) -> None:
        if not HAS_PROGRAM:
            raise SystemExit(
                "\nThis would install no programs, and `import troupe` alone starts nothing. Instead:\n"
                "  ./x wheel && pip install build/wheel/actor_launcher-*.whl    all of Troupe\n"
                "  ./x build && pip install -e python                           what this checkout has built\n"
            )
        super().run()


setup(
    version=version(),
    scripts=programs(),
    data_files=beside_them(),
    cmdclass={"build_scripts": CopyPrograms, "bdist_wheel": PlatformWheel},
)
