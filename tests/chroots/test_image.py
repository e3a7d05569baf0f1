"""The recipe of the image, by README.md's command: buildah needs no daemon, and Debian 12 is made here, not fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from conftest import CACHE, ROOT, base, block

IMAGE = "docker.io/library/debian:bookworm-slim"


class Builder:
    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{place}/images"\nrunroot = "{place}/run"\n'
        )
        # Without a registry, what is not here cannot be had.
        (place / "registries.conf").write_text("unqualified-search-registries = []\n")
        self.environment = {
            **{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(place), "BUILDAH_ISOLATION": "chroot"},
            "CONTAINERS_STORAGE_CONF": str(place / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(place / "registries.conf"),
        }

    def run(self, line: str) -> str:
        ended = subprocess.run(
            ["bash", "-ec", line], cwd=self.place, env=self.environment, capture_output=True, text=True, timeout=600
        )
        assert ended.returncode == 0, f"{line}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        return ended.stdout

    def image(self, name: str, *steps: str) -> None:
        """Made of the smallest Debian 12 and what the steps do in it."""
        self.run(
            f"made=$(buildah from scratch)\nbuildah add $made '{base('bookworm')}' /\n"
            + "".join(f"buildah run $made -- sh -ec '{step}'\n" for step in steps)
            + f"buildah commit --rm $made {name}"
        )


@pytest.fixture(scope="module")
def builder(wheel: Path) -> Iterator[Builder]:
    place = CACHE / "image"
    place.mkdir(parents=True)
    try:
        builder = Builder(place)
        builder.image(IMAGE)
        shutil.copytree(ROOT / "deploy", place / "deploy")
        (place / "build/wheel").mkdir(parents=True)
        shutil.copy(wheel, place / "build/wheel")
        yield builder
    finally:
        shutil.rmtree(place)


def test_the_image_runs_a_job(builder: Builder) -> None:
    builder.run(block("buildah bud"))
    look = "buildah inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}} {{.OCIv1.Config.User}}' troupe"
    entry, user = builder.run(look).split()
    assert (entry, user) == ("actor-launcher", "1000:1000")
    builder.run("buildah from --name job troupe")
    said = builder.run(f"buildah run job -- {entry} --standalone --no-python sh -c 'echo it runs as $(id -u)'")
    assert "it runs as 1000" in said
    assert "/opt/troupe" in builder.run("buildah run job -- python3 -c 'import troupe; print(troupe.__file__)'")


def test_it_goes_on_top_of_an_image_that_trains(builder: Builder) -> None:
    """What stands for PyTorch is a module that the base's Python finds, and Troupe's package is beside it."""
    packages = "apt-get install -y -qq --no-install-recommends python3"
    module = 'echo "import troupe; print(6 * 7)" >/usr/lib/python3/dist-packages/trains.py'
    builder.image("localhost/training", f"apt-get update -qq && {packages}", f"mkdir -p /usr/lib/python3/dist-packages && {module}")
    command = block("buildah bud").replace("-t troupe", "--build-arg BASE=localhost/training -t trained")
    builder.run(command)
    builder.run("buildah from --name trained trained")
    assert "42\n" in builder.run("buildah run trained -- actor-launcher --standalone -m trains")


def test_another_image_takes_it_with_one_line(builder: Builder) -> None:
    """And so does a pod whose init container it is."""
    builder.run(block("buildah bud").replace("-t troupe", "--target launcher -t troupe-launcher"))
    [line] = re.findall(r"^#   (COPY --from=troupe-launcher .*)$", (ROOT / "deploy/image/Dockerfile").read_text(), re.M)
    recipe = builder.place / "taken"
    recipe.write_text(f"FROM {IMAGE}\n{line.replace('troupe-launcher', 'localhost/troupe-launcher')}\n")
    builder.run("buildah bud -f taken -t taken build/wheel && buildah from --name taken taken")
    assert "it runs" in builder.run("buildah run taken -- /opt/troupe/bin/actor-launcher --standalone --no-python echo it runs")
    builder.run("buildah from --name init troupe-launcher && mkdir -m 777 shared")
    builder.run(f"buildah run -v {builder.place}/shared:/troupe init -- cp -R /opt/troupe/. /troupe/")
    assert (builder.place / "shared/bin/actor-launcher").exists() and (builder.place / "shared/troupe/__init__.py").exists()
