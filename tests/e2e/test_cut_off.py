"""A node is cut off while it trains: its ranks are given away, and its own workers end by what its neighbours say.

Machines are network namespaces whose cables are cut; that needs root. Real launchers, no PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launchers import alive, until
from machines import network
from test_network_check import NEEDS_TOOLS, PORT, WITHIN, Job, cut, job

__all__ = ["job"]  # the fixture

# Twice the default, so that a busy machine cuts no link; other tests have one that neighbours could not judge by.
LEASE = "keep_alive_interval=2,keep_alive_max_attempt=2"


@pytest.fixture
def three(job: Job, tmp_path: Path) -> Iterator[Job]:
    """The master on machine 0; n1, n2 and n3 on others, of which two suffice."""
    with network(4, tmp_path / "hosts") as net:
        job.net, job.where, job.nnodes = net, f"{net.address(0)}:{PORT}", "2:3"
        job.trains_while.touch()
        conf = f"--rdzv-conf={LEASE},last_call_timeout=15"
        job.start("master", f"--json-log={job.log}", conf, program="actor-master")
        for name in ("n1", "n2", "n3"):
            job.start(name, f"{conf},is_host=0")
        yield job
        job.trains_while.unlink(missing_ok=True)


@NEEDS_TOOLS
@pytest.mark.parametrize(
    ("from_machines", "said"),
    [
        ((0,), ("which node n", "has: this node is cut off")),
        pytest.param((0, 2, 3), ("nor to any of 2 other nodes", "seems to be cut off"), marks=pytest.mark.long),
    ],
    ids=["from the master", "from all"],
)
def test_the_workers_of_a_node_that_is_cut_off(
    three: Job, from_machines: tuple[int, ...], said: tuple[str, ...]
) -> None:
    [before] = until(lambda: three.workers("n1"), WITHIN, "its worker")
    assert before.world_size == 3
    # A neighbour is believed whose link is older than the absence of the master.
    until(lambda: time.monotonic_ns() - before.began_ns > 4e9, WITHIN, "links of some age")
    for machine in from_machines:
        cut(three.net, 1, machine)
    until(lambda: not alive(before.pid), WITHIN, "the end of its worker")
    for words in said:
        assert words in three.runs["n1"].err(), three.said()
    # The others have its rank.
    until(lambda: {worker.rank for name in ("n2", "n3") for worker in three.workers(name)[1:]} == {0, 1}, WITHIN, "the others")
