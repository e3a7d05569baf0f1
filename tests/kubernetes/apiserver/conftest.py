"""One server for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server import Server, definitions


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    programs = request.config.getoption("--apiserver")
    assert programs, "--apiserver FOLDER names what tests/kubernetes/apiserver/build has made"
    started = Server(programs.absolute(), tmp_path_factory.mktemp("server"))
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
