"""A node whose hardware is broken is left out, and its machine is marked for the scheduler of Kubernetes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_server import ApiServer, Cluster
from conftest import Start
from launchers import Run, free_port, until

WITHIN = 60.0
# A failure of the hardware at the node named; the others train until they are told to end.
WORKER = """
if [ "$GROUP_RANK" = 1 ] && [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && [ ! -e "$1/broke" ]; then
  touch "$1/broke"; exit 201
fi
until [ -e "$1/finish" ]; do sleep 0.02; done
"""
TAINT = {"key": "troupe/faulty", "value": "job", "effect": "NoSchedule"}


@pytest.fixture
def cluster() -> Cluster:
    """All launchers of this machine are in one pod, whose address is a loopback one."""
    made = Cluster(pods={f"metadata.name={socket.gethostname()}": "machine-1"})
    for n in (1, 2):
        made.add_machine(f"machine-{n}")
    return made


@pytest.fixture
def api(tmp_path: Path, cluster: Cluster) -> Iterator[ApiServer]:
    (tmp_path / "api").mkdir()
    server = ApiServer(tmp_path / "api", cluster)
    yield server
    server.close()


def begun(shell: Start, directory: Path, api: ApiServer, *more: str) -> Run:
    """Two nodes, the second of which fails by its hardware; one is enough."""
    options = ["--nnodes=1:2", "--rdzv-id=job", f"--service-account={api.account}", *(more or ["--mark-faulty=taint"])]
    run = shell(WORKER, directory, port=free_port(), procs=1, restarts=1, options=options, environment=api.environment())
    until(lambda: "this node runs the job's master" in run.err(), WITHIN, "the first node has the master")
    run.start_node(1)
    return run


def finished(run: Run, directory: Path) -> None:
    (directory / "finish").touch()
    run.wait(WITHIN)
    assert run.launchers[0].returncode == 0, run.err()


def test_the_machine_of_a_broken_node_is_tainted(shell: Start, tmp_path: Path, api: ApiServer, cluster: Cluster) -> None:
    cluster.machines["machine-1"]["spec"]["taints"] = [{"key": "other", "effect": "NoExecute"}]
    cluster.conflicts = 2
    run = begun(shell, tmp_path, api)
    until(lambda: TAINT in cluster.taints("machine-1"), WITHIN, f"the taint\n{run.err()}")
    assert [taint["key"] for taint in cluster.taints("machine-1")] == ["other", "other-1", "other-0", "troupe/faulty"]
    assert cluster.taints("machine-2") == []
    finished(run, tmp_path)
    assert "the machine machine-1 of node" in run.err()
    assert "kubectl taint nodes machine-1 troupe/faulty-" in run.err()


def test_or_cordoned(shell: Start, tmp_path: Path, api: ApiServer, cluster: Cluster) -> None:
    run = begun(shell, tmp_path, api, "--mark-faulty=cordon")
    until(lambda: cluster.machines["machine-1"]["spec"].get("unschedulable"), WITHIN, f"the cordon\n{run.err()}")
    finished(run, tmp_path)
    assert cluster.taints("machine-1") == []


def test_a_token_that_is_replaced(shell: Start, tmp_path: Path, api: ApiServer, cluster: Cluster) -> None:
    token = (api.account / "token").read_text()
    (api.account / "token").write_text("one that has ended")
    run = begun(shell, tmp_path, api)
    until(lambda: cluster.asked, WITHIN, f"a request\n{run.err()}")
    assert not cluster.taints("machine-1")
    (api.account / "token").write_text(token)
    until(lambda: TAINT in cluster.taints("machine-1"), WITHIN, f"the taint\n{run.err()}")
    finished(run, tmp_path)
    assert token not in run.err() + run.err(1)


def test_a_role_that_lacks_something_is_named(shell: Start, tmp_path: Path, api: ApiServer, cluster: Cluster) -> None:
    cluster.may_patch = False
    run = begun(shell, tmp_path, api)
    until(lambda: "could not be marked" in run.err(), WITHIN, "the warning")
    finished(run, tmp_path)
    assert 'User "x" cannot patch resource "nodes" (status 403)' in run.err()
    assert "kubectl taint nodes machine-1 troupe/faulty=job:NoSchedule" in run.err()


def test_a_server_that_is_another_is_told_nothing(shell: Start, tmp_path: Path, api: ApiServer, cluster: Cluster) -> None:
    (tmp_path / "other").mkdir()
    other = ApiServer(tmp_path / "other", cluster)
    (api.account / "ca.crt").write_bytes((other.account / "ca.crt").read_bytes())
    other.close()
    run = begun(shell, tmp_path, api)
    until(lambda: "restarting without node" in run.err(), WITHIN, f"the node is left out\n{run.err()}")
    finished(run, tmp_path)
    assert "could not be marked as faulty: the master has ended; the API server at" in run.err()
    assert "certificate verify failed" in run.err()
    assert cluster.asked == []
    assert not cluster.taints("machine-1")


@pytest.mark.parametrize(
    ("lacks", "line"),
    [
        ("variables", "this is no pod of Kubernetes"),
        ("token", "token' cannot be read: the pod has no service account"),
        ("authority", "has no certificate of an authority"),
    ],
)
def test_what_a_pod_lacks_is_one_line(shell: Start, tmp_path: Path, api: ApiServer, lacks: str, line: str) -> None:
    environment = {} if lacks == "variables" else api.environment()
    if lacks == "token":
        (api.account / "token").unlink()
    if lacks == "authority":
        (api.account / "ca.crt").write_text("nothing")
    options = ["--mark-faulty=taint", f"--service-account={api.account}"]
    run = shell("true", port=free_port(), options=options, environment=environment)
    assert run.wait(WITHIN) == [1]
    [told] = [text for text in run.err().splitlines() if "--mark-faulty" in text]
    assert line in told
