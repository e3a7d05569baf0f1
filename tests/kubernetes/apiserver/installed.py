"""actor-operator as deploy/chart installs it: its accounts and rights, and its Deployment."""

from __future__ import annotations

from pathlib import Path

import yaml
from cluster import Cluster
from rendering import Case, rendered
from server import for_1_20

from kubelet import ROOT

NAMESPACE = "troupe"
DEFINITIONS = ROOT / "deploy/chart/crds"
APIS = ("policy/v1beta1",)
VALUES = {"machines": {"markFaulty": "taint"}, "nodeSelector": {"kubernetes.io/hostname": "head"}}


class Operators:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        chart = rendered(Case(VALUES, namespace=cluster.namespace(NAMESPACE)), APIS)
        cluster.apply(*chart.documents)
        self.tests = chart.tests

    def said(self) -> str:
        return self.cluster.said(NAMESPACE, "troupe")

    @property
    def leader(self) -> str:
        """`POD_NUMBER`: one that starts again in its pod has another number."""
        lease = "/apis/coordination.k8s.io/v1/namespaces/troupe/leases/troupe"
        return self.cluster.server.get(lease).body.get("spec", {}).get("holderIdentity") or ""

    def kill(self, operator: str) -> None:
        pod, _, _ = operator.partition("_")
        self.cluster.machines.kill(f"{NAMESPACE}.{pod}")

    def restarts(self) -> int:
        pods = self.cluster.pods(NAMESPACE)
        return sum(s["restartCount"] for pod in pods for s in pod["status"].get("containerStatuses", []))


def define(cluster: Cluster, definition: Path) -> None:
    cluster.server.define(for_1_20(yaml.safe_load(definition.read_text())))
