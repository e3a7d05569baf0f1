"""What deploy/chart installs, as its user sees it: the operator's metrics and probes, and `helm test`."""

from __future__ import annotations

import copy
import subprocess

import pytest
from cluster import Cluster
from installed import NAMESPACE, Operators
from server import Document

WITHIN = 120.0


class Installed:
    def __init__(self, cluster: Cluster, operators: Operators) -> None:
        self.cluster, self.operators = cluster, operators

    def page(self, pod: str, path: str) -> tuple[int, str]:
        """As a kubelet or a Prometheus reads it: the status and the page."""
        running = self.cluster.machines.running[f"{NAMESPACE}.{pod}"]
        read = ["ip", "netns", "exec", running.network, "curl", "-s", "-w", "\n%{http_code}"]
        done = subprocess.run([*read, f"http://127.0.0.1:9402{path}"], capture_output=True, text=True)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), text

    @property
    def pods(self) -> list[str]:
        found = self.cluster.pods(NAMESPACE)
        return [p["metadata"]["name"] for p in found if p["metadata"]["labels"].get("app.kubernetes.io/component") == "operator"]

    def helm_test(self, change_job: Document | None = None) -> str:
        """The phase that the last of its objects, a pod, has ended in. Earlier ones are deleted first, as Helm does."""
        for document in self.operators.tests:
            self.delete(document)
        for document in copy.deepcopy(self.operators.tests):
            if document["kind"] == "ElasticJob" and change_job:
                [container] = document["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"]
                container.update(change_job)
            self.cluster.apply(document)
        phase = lambda: self.waiting_pod()["status"].get("phase")
        self.cluster.until(lambda: phase() in ("Succeeded", "Failed"), self.told, WITHIN)
        return phase()

    def delete(self, document: Document) -> None:
        about = document["metadata"]
        kind = document["kind"].lower()
        words = ("delete", kind, about["name"], "-n", about["namespace"], "--ignore-not-found")
        done = self.cluster.server.kubectl(*words)
        assert done.returncode == 0, done.stderr

    def waiting_pod(self) -> Document:
        name = self.operators.tests[-1]["metadata"]["name"]
        return self.cluster.server.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}").body

    def told(self) -> str:
        return self.cluster.said(NAMESPACE, self.operators.tests[-1]["metadata"]["name"])


@pytest.fixture
def installed(elastic: tuple[Cluster, Operators]) -> Installed:
    made = Installed(*elastic)
    made.cluster.until(lambda: made.operators.leader, made.operators.said, WITHIN)
    return made


def test_each_operator_is_well_and_one_leads(installed: Installed) -> None:
    leads = []
    for pod in installed.pods:
        installed.cluster.until(
            lambda pod=pod: installed.page(pod, "/readyz")[0] == 200, installed.operators.said, WITHIN
        )
        assert installed.page(pod, "/healthz") == (200, "ok\n")
        status, page = installed.page(pod, "/metrics")
        assert status == 200 and 'troupe_operator_api_requests_total{method="GET",status="200"}' in page, page
        leads += [pod] if "troupe_operator_leads 1" in page.splitlines() else []
    assert leads == [installed.operators.leader.partition("_")[0]]


def test_helm_test_runs_a_job_again_and_again(installed: Installed) -> None:
    for _ in range(2):
        assert installed.helm_test() == "Succeeded", installed.told()
        assert "ElasticJob troupe/troupe-helm-test is Succeeded" in installed.told()


def test_helm_test_tells_why_a_job_failed(installed: Installed) -> None:
    failing = {"command": ["actor-launcher", "--nnodes=2", "--nproc-per-node=1", "--no-python", "/bin/false"]}
    assert installed.helm_test(failing) == "Failed"
    assert "ElasticJob troupe/troupe-helm-test has failed: " in installed.told()
