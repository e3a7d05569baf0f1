"""What deploy/chart becomes with given values: render.go renders it with the engine that Helm uses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Document = dict[str, Any]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHART = ROOT / "deploy/chart"
# Where Debian puts the sources of libraries.
LIBRARIES = Path("/usr/share/gocode")
PACKAGES = {
    "golang-github-masterminds-sprig-dev": "github.com/Masterminds/sprig",
    "golang-github-xeipuuv-gojsonschema-dev": "github.com/xeipuuv/gojsonschema",
    "golang-k8s-sigs-yaml-dev": "sigs.k8s.io/yaml",
}
# What a cluster of today says that it has, as far as the chart asks.
APIS = ("policy/v1", "scheduling.volcano.sh/v1beta1")
DIGEST = "sha256:" + "7" * 64
TEN_NODES = "".join(f"asw-{node % 4} psw-0 192.168.0.{node}\n" for node in range(10))


class Case(NamedTuple):
    values: Document
    release: str = "troupe"
    namespace: str = "troupe"


# The values that installations are made with.
CASES = {
    "defaults": Case({}),
    "guide": Case(
        {
            "registry": "registry.local",
            "gangScheduling": {"enabled": True, "groupSize": 8, "topologyLabelKey": "example.com/group"},
            "topoMapper": {"topology_config": TEN_NODES},
            "controller": {"image": {"name": "elasticjob-controller", "tag": "v0.7.0"}},
            "dlroverMaster": {"image": {"name": "dlrover-master", "tag": "v0.7.0"}},
            "rbacProxy": {"image": {"name": "kube-rbac-proxy", "tag": "v0.13.1"}},
        },
        namespace="dlrover",
    ),
    "names-and-tags": Case(
        {
            "controller": {"image": "operators/actor-operator", "tag": "2"},
            "dlroverMaster": {"image": "trainers/words", "tag": "3"},
        }
    ),
    "one-namespace": Case({"watchNamespace": "training", "replicas": 1}),
    "monitored": Case({"podMonitor": {"enabled": True}}),
    "monitored-masters": Case(
        {
            "watchNamespace": "training",
            "metrics": {"port": 8080, "masterPort": 9500},
            "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "1m30s"},
        }
    ),
    "marks": Case({"machines": {"markFaulty": "taint"}}),
    "marks-of-one-namespace": Case({"watchNamespace": "training", "machines": {"markFaulty": "cordon"}}),
    "long": Case(
        {"machines": {"markFaulty": "cordon"}, "watchNamespace": "n" * 63},
        release="a-name-of-sixty-three-characters-that-goes-on.and-on-and-on-end",
        namespace="m" * 63,
    ),
    "all": Case(
        {
            "registry": "registry.example.com:5000/a_team/ai/",
            "controller": {"image": {"tag": DIGEST}},
            "imagePullPolicy": "Always",
            "imagePullSecrets": [{"name": "registry"}],
            "gangScheduling": {"enabled": True, "scheduler": "scheduler-plugins", "groupSize": 10000},
            "replicas": 3,
            "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": None},
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
                        ]
                    }
                }
            },
            "priorityClassName": "system-cluster-critical",
        }
    ),
}


class Rendered(NamedTuple):
    documents: list[Document]  # that are installed
    tests: list[Document]  # what `helm test` makes, in Helm's order
    notes: str

    def of(self, kind: str, ending: str = "") -> Document:
        [found] = [d for d in self.documents if d["kind"] == kind and d["metadata"]["name"].endswith(ending)]
        return found

    def test(self, kind: str) -> Document:
        [found] = [d for d in self.tests if d["kind"] == kind]
        return found

    @property
    def kinds(self) -> list[str]:
        return sorted(d["kind"] for d in self.documents)


def missing() -> list[str]:
    """The packages without which nothing can be rendered here."""
    lacking = [package for package, folder in PACKAGES.items() if not (LIBRARIES / "src" / folder).is_dir()]
    return lacking if shutil.which("go") else ["golang-go", *lacking]


@cache
def renderer() -> Path:
    built = ROOT / "build/chart"
    built.mkdir(parents=True, exist_ok=True)
    settings = {"GO111MODULE": "off", "GOPATH": str(LIBRARIES), "GOCACHE": str(built / "cache"), "CGO_ENABLED": "0"}
    line = ["go", "build", "-o", str(built / "render"), str(HERE / "chart/render.go")]
    done = subprocess.run(line, env=os.environ | settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built / "render"


def answer(case: Case, apis: Sequence[str] = APIS) -> subprocess.CompletedProcess[str]:
    asked = case._asdict() | {"apis": list(apis)}
    return subprocess.run([renderer(), CHART], input=json.dumps(asked), capture_output=True, text=True)


def rendered(case: Case, apis: Sequence[str] = APIS) -> Rendered:
    done = answer(case, apis)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    found = [document for text in made["manifests"].values() for document in yaml.safe_load_all(text)]
    hooks = {True: [], False: []}
    for document in filter(None, found):
        hooks["helm.sh/hook" in document["metadata"].get("annotations", {})].append(document)
    hooks[True].sort(key=lambda d: int(d["metadata"]["annotations"]["helm.sh/hook-weight"]))
    return Rendered(hooks[False], hooks[True], made["notes"])
