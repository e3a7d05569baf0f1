"""A master on a machine of its own is the third party of two nodes that fail with each other. Real launchers, no PyTorch.

Machines are network namespaces whose cables are cut; that needs root.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from machines import CARD, network
from test_network_check import CONF, NEEDS_TOOLS, PORT, PROBE, WITHIN, Job, cut, job, keep_the_master, on

__all__ = ["job"]  # the fixture


@pytest.fixture
def apart(job: Job, tmp_path: Path) -> Iterator[Job]:
    """The master on machine 0, and n1 and n2 on others, of which one suffices."""
    with network(3, tmp_path / "hosts") as net:
        job.net, job.where, job.nnodes = net, f"{net.address(0)}:{PORT}", "1:2"
        for machine in (0, 1, 2):
            keep_the_master(net, machine)
        yield job


def starts_apart(job: Job) -> None:
    options = ["--network-check", f"--network-check-timeout={PROBE}", f"--rdzv-conf={CONF},last_call_timeout=15"]
    job.start("master", f"--json-log={job.log}", "--verbose", *options, program="actor-master")
    for name in ("n1", "n2"):
        job.start(name)


@NEEDS_TOOLS
@pytest.mark.parametrize(("broken", "good"), [(1, "n2"), pytest.param(2, "n1", marks=pytest.mark.long)])
def test_of_two_nodes_the_one_that_is_cut_off_is_named(apart: Job, broken: int, good: str) -> None:
    on(apart.net, broken, f"iptables -A INPUT -i {CARD} -j DROP")
    starts_apart(apart)
    apart.trained(good)
    apart.left(f"n{broken}", f"node n{broken} is faulty: its probes failed with ", f"{good}, the master")
    [fault] = apart.fields("node_faulty")
    assert fault["names"] == f"n{broken}"
    assert apart.fields("link_faulty") == apart.fields("check_undecided") == []
    assert apart.over()["nodes"] == 2
    assert apart.runs["master"].wait(WITHIN) == [0]
    # Once as a finding; that it was sent away and is lost is said in short.
    told = [line for line in apart.runs["master"].err().splitlines() if "its probes failed with" in line]
    assert len(told) == 1, apart.said()
    assert f"node n{broken} is lost: the check found it faulty" in apart.runs["master"].err()


@NEEDS_TOOLS
def test_of_two_nodes_whose_link_is_cut_neither_is_blamed(apart: Job) -> None:
    cut(apart.net, 1, 2)
    starts_apart(apart)
    apart.waits_for("check_over")
    [fault] = apart.fields("link_faulty")
    assert sorted(fault["names"].split(",")) == ["n1", "n2"]
    assert apart.fields("node_faulty") == []
    last = {fields["node"]: fields["good"] for fields in apart.fields("node_checked")}
    assert sorted(last) == ["n1", "n2"]
    [leaves], [stays] = ([n for n in last if last[n] is good] for good in (False, True))
    apart.left(leaves, "the link between ", f"; {leaves} leaves")
    apart.trained(stays)


@NEEDS_TOOLS
@pytest.mark.long
def test_a_master_behind_a_firewall_blames_neither(apart: Job) -> None:
    cut(apart.net, 1, 2)
    on(apart.net, 0, f"iptables -A INPUT -i {CARD} -j DROP")
    starts_apart(apart)
    apart.waits_for("check_spares_one")
    assert apart.fields("node_faulty") == apart.fields("link_faulty") == []
    [undecided] = apart.fields("check_undecided")
    assert sorted(undecided["names"].split(",")) == ["n1", "n2"]
    assert "and none with the master, whose port for this a firewall may close" in apart.runs["master"].err()


@NEEDS_TOOLS
@pytest.mark.long
def test_a_master_beside_a_node_is_no_third_party(job: Job, tmp_path: Path) -> None:
    with network(3, tmp_path / "hosts") as net:
        job.net, job.where, job.nnodes = net, f"{net.address(0)}:{PORT}", "1:2"
        for machine in (0, 1):
            keep_the_master(net, machine)
        on(net, 0, f"iptables -A INPUT -i {CARD} -j DROP")
        options = ["--network-check", f"--network-check-timeout={PROBE}", f"--rdzv-conf={CONF},last_call_timeout=15"]
        job.start("master", f"--json-log={job.log}", *options, program="actor-master")
        for name in ("n0", "n1"):
            job.start(name)
        job.waits_for("check_spares_one")
        assert job.fields("node_faulty") == job.fields("link_faulty") == []


def test_a_check_that_only_a_later_node_asks_for_is_refused_by_its_name(job: Job) -> None:
    job.start("n0", f"--json-log={job.log}")
    later = job.start("n1", "--network-check")
    assert later.wait(WITHIN) == [1], job.said()
    said = "it was told --network-check, and the node that runs the job's master was not: give all nodes the same"
    assert said in later.err()
    job.start("n2")
    job.trained("n0", "n2")
    assert said in job.runs["n0"].err()
    assert job.events("check_begun") == []
