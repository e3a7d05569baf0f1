"""A master marks the machine of a broken node at a real API server, with the rights that its manifest gives and no others."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubelet import ROOT
from server import STRANGER, Server, free_ports

WITHIN = 60.0
MANIFEST = ROOT / "deploy/kubernetes/mark-faulty.yaml"
# The second node fails by its hardware, and the first trains until it is told to end.
WORKER = """#!/bin/sh
if [ "$GROUP_RANK" = 1 ] && [ ! -e broke ]; then touch broke; exit 201; fi
until [ -e finish ]; do sleep 0.02; done
"""


def taints(server: Server, machine: str) -> list[dict[str, Any]]:
    return server.get(f"/api/v1/nodes/{machine}").body["spec"].get("taints", [])


@pytest.fixture
def machine(server: Server) -> Iterator[str]:
    """With a pod of this host's name on it: all launchers of a test are in that pod."""
    name, pod = f"machine-{time.monotonic_ns()}", socket.gethostname()
    made = server.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    assert made.status == 201, made.body
    pods = "/api/v1/namespaces/default/pods"
    server.ask("DELETE", f"{pods}/{pod}?gracePeriodSeconds=0", None)
    spec = {"nodeName": name, "containers": [{"name": "node", "image": "x"}]}
    made = server.ask("POST", pods, {"metadata": {"name": pod}, "spec": spec})
    assert made.status == 201, made.body
    yield name
    server.kubectl("delete", "--ignore-not-found", "-f", MANIFEST)


def account(server: Server, directory: Path, token: str) -> Path:
    """What a pod finds of its account: of the manifest's, or with another token."""
    applied = server.kubectl("apply", "-f", MANIFEST)
    assert applied.returncode == 0, applied.stderr
    asked = server.ask("POST", "/api/v1/namespaces/default/serviceaccounts/troupe-master/token", {"spec": {}})
    assert asked.status == 201, asked.body
    made = directory / "account"
    made.mkdir()
    (made / "token").write_text(token or asked.body["status"]["token"])
    (made / "namespace").write_text("default")
    (made / "ca.crt").write_bytes((server.directory / "certificates" / "apiserver.crt").read_bytes())
    return made


def run(launcher: Path, server: Server, directory: Path, how: str, token: str = "") -> str:
    """What the first node's launcher says of a job whose second node is broken."""
    host, [port] = "127.0.0.1", free_ports(1)
    worker = directory / "worker.sh"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    line = [launcher, "--nnodes=1:2", f"--rdzv-endpoint={host}:{port}", "--rdzv-id=words", "--no-python"]
    line += [f"--mark-faulty={how}", f"--service-account={account(server, directory, token)}", str(worker)]
    environment = os.environ | {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": server.url.rpartition(":")[2],
    }
    errors = [directory / f"node-{node}.err" for node in range(2)]
    nodes = []
    try:
        for err in errors:
            with err.open("wb") as to:
                nodes.append(subprocess.Popen(line, cwd=directory, env=environment, stderr=to, stdout=to))
            ends = time.monotonic() + WITHIN
            while "joined" not in errors[0].read_text():
                assert time.monotonic() < ends and nodes[0].poll() is None, errors[0].read_text()
                time.sleep(0.02)
        while "marked as faulty" not in errors[0].read_text():
            assert time.monotonic() < ends and nodes[0].poll() is None, errors[0].read_text()
            time.sleep(0.02)
        (directory / "finish").touch()
        assert nodes[0].wait(WITHIN) == 0, errors[0].read_text()
    finally:
        for node in nodes:
            node.kill()
            node.wait()
    return errors[0].read_text()


def test_the_machine_has_the_taint_beside_those_of_others(
    launcher: Path, server: Server, machine: str, tmp_path: Path
) -> None:
    before = taints(server, machine)
    assert before, "the server itself has tainted a machine that is not ready"
    said = run(launcher, server, tmp_path, "taint")
    assert taints(server, machine) == [
        *before,
        {"key": "troupe/faulty", "value": "words", "effect": "NoSchedule"},
    ]
    assert f"the machine {machine} of node" in said


def test_or_no_pod_is_scheduled_there(launcher: Path, server: Server, machine: str, tmp_path: Path) -> None:
    run(launcher, server, tmp_path, "cordon")
    assert server.get(f"/api/v1/nodes/{machine}").body["spec"]["unschedulable"] is True


def test_a_right_that_lacks_is_named(launcher: Path, server: Server, machine: str, tmp_path: Path) -> None:
    before = taints(server, machine)
    said = run(launcher, server, tmp_path, "taint", STRANGER)
    assert 'User "stranger" cannot list resource "pods" in API group "" in the namespace "default" (status 403)' in said
    assert taints(server, machine) == before


def test_pods_are_found_by_their_address(server: Server, machine: str) -> None:
    """As the master asks for those that are not its own."""
    pod = f"/api/v1/namespaces/default/pods/{socket.gethostname()}"
    body = server.get(pod).body
    body["status"] = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}
    assert server.ask("PUT", f"{pod}/status", body).status == 200
    found = server.get("/api/v1/namespaces/default/pods?fieldSelector=status.podIP%3D10.1.2.3&limit=100").body
    assert [item["spec"]["nodeName"] for item in found["items"]] == [machine]
