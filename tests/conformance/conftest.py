"""Two servers of one protocol: torch's and ours."""

import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import torch.distributed as dist

PATIENCE = timedelta(seconds=60)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", help="the program that hosts a store of ours")


Connect = Callable[..., dist.TCPStore]


def connector(port: int) -> Connect:
    def connect(timeout: timedelta = PATIENCE) -> dist.TCPStore:
        return dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timeout)

    return connect


@pytest.fixture
def our_port(pytestconfig: pytest.Config) -> Iterator[int]:
    program = pytestconfig.getoption("--store")
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdout and peer.stdin
        yield int(peer.stdout.readline())
        peer.stdin.close()


@pytest.fixture
def ours(our_port: int) -> Connect:
    return connector(our_port)


@pytest.fixture
def theirs() -> Iterator[Connect]:
    server = dist.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=PATIENCE
    )
    yield connector(server.port)
    del server
