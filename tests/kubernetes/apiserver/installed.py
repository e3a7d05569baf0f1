"""actor-operator as deploy/chart installs it: its accounts and rights, and the pods of its Deployment."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml
from cluster import Cluster
from rendering import Case, rendered
from server import Document, for_1_20

from kubelet import ROOT

NAMESPACE = "troupe"
DEFINITIONS = ROOT / "deploy/chart/crds"
APIS = ("policy/v1beta1",)
VALUES = {"machines": {"markFaulty": "taint"}, "nodeSelector": {"kubernetes.io/hostname": "head"}}


class Operators:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        chart = rendered(Case(VALUES, namespace=cluster.namespace(NAMESPACE)), APIS)
        cluster.apply(*(d for d in chart.documents if d["kind"] not in ("Deployment", "Pod")))
        deployment = chart.of("Deployment")["spec"]
        for number in range(deployment["replicas"]):
            cluster.apply(pod_of_deployment(deployment["template"], number))

    def said(self) -> str:
        return self.cluster.said(NAMESPACE, "operator-?")

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


def pod_of_deployment(template: Document, number: int) -> Document:
    """Without its controller, but a pod that ends is started again as its machine does it."""
    template = copy.deepcopy(template)
    about = template["metadata"] | {"name": f"operator-{number}", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": template["spec"] | {"restartPolicy": "Always"}}


def define(cluster: Cluster, definition: Path) -> None:
    cluster.server.define(for_1_20(yaml.safe_load(definition.read_text())))
