"""A wheel that carries the native programs, which are installed beside the interpreter, as its scripts are, and the library of
troupe.checkpoint.

The programs are taken from TROUPE_BIN_DIR, the library from the folder `lib` beside that. Without it the wheel holds the Python
part alone.
"""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

from distutils.command.build_scripts import build_scripts  # after setuptools, which provides it

LIBRARY = "libtroupe_ckpt.so"
PROGRAMS = ("actor-launcher", "actor-master", "actor-shell", "troupe-saver")


def native_programs() -> list[str]:
    folder = os.environ.get("TROUPE_BIN_DIR")
    found = [Path(folder, name) for name in PROGRAMS] if folder else []
    if missing := [str(path) for path in found if not path.is_file()]:
        raise SystemExit(f"TROUPE_BIN_DIR: there is no {', '.join(missing)} (./x build makes them)")
    return [str(path) for path in found]


def native_library() -> Path | None:
    folder = os.environ.get("TROUPE_BIN_DIR")
    library = Path(folder).parent / "lib" / LIBRARY if folder else None
    if library and not library.is_file():
        raise SystemExit(f"there is no {library} (./x build makes it)")
    return library


class PackagesAndLibrary(build_py):
    def run(self) -> None:
        super().run()
        if library := native_library():
            self.copy_file(str(library), os.path.join(self.build_lib, "troupe", "checkpoint"))


class CopyPrograms(build_scripts):
    """setuptools would look for a `#!` line, as if the programs were text."""

    def copy_scripts(self) -> tuple[list[str], list[str]]:
        self.mkpath(self.build_dir)
        copies = [os.path.join(self.build_dir, Path(script).name) for script in self.scripts]
        for script, copy in zip(self.scripts, copies, strict=True):
            self.copy_file(script, copy)
            os.chmod(copy, 0o755)
        return copies, copies


class PlatformWheel(bdist_wheel):
    """Any Python, but only this kind of machine."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = not self.distribution.scripts

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        return "py3", "none", platform


setup(
    scripts=native_programs(),
    cmdclass={
        "build_py": PackagesAndLibrary,
        "build_scripts": CopyPrograms,
        "bdist_wheel": PlatformWheel,
    },
)
