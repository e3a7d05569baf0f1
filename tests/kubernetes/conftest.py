"""The manifests of deploy/kubernetes: their schemas, and their pods as real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from controllers import documents
from kubelet import ROOT, Kubelet, kubelet

TOKEN = "0123456789abcdef0123456789abcdef"

Cluster = Callable[..., Kubelet]


def pytest_addoption(parser: pytest.Parser) -> None:
    built = ROOT / "build/release/bin/actor-launcher"
    parser.addoption("--launcher", type=Path, default=built, help="the program of a build, beside the others")
    parser.addoption("--apiserver", type=Path, help="a folder with kube-apiserver, etcd and kubectl (./x kubernetes)")


@pytest.fixture
def launcher(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--launcher").absolute()


@pytest.fixture
def cluster(launcher: Path, tmp_path: Path) -> Iterator[Cluster]:
    """With what a manifest takes for given: the token, and a script in the volume of the data."""
    programs = launcher.parents[1]
    made = []

    def make(manifest: Path, script: str, **config_maps: dict[str, str]) -> Kubelet:
        objects = documents(manifest)
        own = {d["metadata"]["name"]: d["data"] for d in objects if d["kind"] == "ConfigMap"}
        running = kubelet(
            tmp_path,
            programs,
            secrets={"words-token": {"token": f"{TOKEN}\n"}},
            config_maps=own | config_maps,
            services=[d for d in objects if d["kind"] == "Service"],
        )
        made.append(running)
        entered = running.__enter__()
        (entered.claim("words") / "train.py").write_text(script)
        return entered

    yield make
    for running in made:
        running.__exit__(None, None, None)
