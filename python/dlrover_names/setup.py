"""A wheel that puts the package `dlrover` behind what else is installed, and never in its place.

Its modules are in a folder of this distribution's own. A line in a .pth file names the folder, so that Python looks there
last: for a name that no other distribution has.
"""

from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
NAME = "troupe_dlrover_names"
FOLDER = f"{NAME}/path"


def version() -> str:
    for folder in (HERE.parents[1], HERE):
        if (folder / "VERSION").is_file():
            return (folder / "VERSION").read_text().strip()
    raise SystemExit("there is no file VERSION: build from a whole checkout")


class WithFolder(build_py):
    def run(self) -> None:
        super().run()
        (Path(self.build_lib) / f"{NAME}.pth").write_text(FOLDER + "\n")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), f"{self.build_lib}/{NAME}.pth"]


setup(
    version=version(),
    install_requires=[f"actor-launcher=={version()}"],
    packages=[NAME, *(f"{NAME}.path.{package}" for package in find_packages(HERE / FOLDER))],
    cmdclass={"build_py": WithFolder},
)
