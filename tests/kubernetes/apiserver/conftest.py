"""One server for all tests of manifests, and one cluster for all tests of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, cluster
from installed import DEFINITIONS, Operators, define
from server import Server, definitions


@pytest.fixture(scope="session")
def server_programs(request: pytest.FixtureRequest) -> Path:
    programs = request.config.getoption("--apiserver")
    assert programs, "--apiserver FOLDER names what tests/kubernetes/apiserver/build has made"
    return programs.absolute()


@pytest.fixture(scope="session")
def server(server_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(server_programs, tmp_path_factory.mktemp("server"))
    try:
        started.start()
        for definition in definitions():
            started.define(definition)
        # kubectl asks for this once they are all there.
        told = lambda: "sh.volcano.batch.v1alpha1.Job" in started.get("/openapi/v2").body["definitions"]
        started.until(told, "the server tells what it has")
        yield started
    finally:
        started.close()


@pytest.fixture(scope="session")
def elastic(
    server_programs: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Operators]]:
    """Machines of one device each, and the operator, which was there before the definitions of its jobs."""
    programs = request.config.getoption("--launcher").absolute().parents[1]
    with cluster(tmp_path_factory.mktemp("cluster"), server_programs, programs) as made:
        made.add_machine("head", 0)
        for number in range(1, 5):
            made.add_machine(f"machine-{number}", number, **{"nvidia.com/gpu": 1})
        operators = Operators(made)
        made.until(lambda: "elasticjobs" in operators.said(), operators.said)
        operators.told_without_definitions = operators.said()
        for definition in sorted(DEFINITIONS.glob("*.yaml")):
            define(made, definition)
        yield made, operators
