#!/usr/bin/env python3
"""trim.py FOLDER: makes the files of this folder of the schemas of FOLDER, as they were published (README.md has where).

Kept is what decides whether an object is valid, for the kinds that the manifests, the chart and their tests use.
Descriptions, most of the bytes, are not. Of DLRover's two definitions it also makes those that the chart installs, in
deploy/chart/crds, with what Troupe adds to them.
"""

from __future__ import annotations

import copy
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CRDS = {
    "volcano_job": "batch.volcano.sh_jobs.yaml",
    "hypernode": "topology.volcano.sh_hypernodes.yaml",
    "jobset": "jobset.x-k8s.io_jobsets.yaml",
    "trainjob": "trainer.kubeflow.org_trainjobs.yaml",
    "podmonitor": "monitoring.coreos.com_podmonitors.yaml",
    "elasticjob": "elastic.iml.github.io_elasticjobs.yaml",
    "scaleplan": "elastic.iml.github.io_scaleplans.yaml",
}
INSTALLED = {"elasticjob": "elasticjobs.yaml", "scaleplan": "scaleplans.yaml"}
CHART = HERE.parents[2] / "deploy/chart/crds"
HEADER = """\
# Made by tests/kubernetes/schemas/trim.py, not by hand. The definition is that of DLRover (the
# project intelligent-machine-learning/dlrover, under the Apache License 2.0;
# tests/kubernetes/schemas/README.md has path and commit). {changes}
"""
CHANGES = {
    "elasticjob": """Changed: descriptions within pod
# templates are left out; the field restartCounts, the status restarts, the short name ej, the
# columns Nodes and Restarts and the scale subresource were added.""",
    "scaleplan": "Nothing of its schema was changed.",
}
OPENAPI = "kubernetes_openapi_v2.json.gz"
BUILT_IN = {
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("apps", "v1", "Deployment"),
    ("policy", "v1", "PodDisruptionBudget"),
    *(("", "v1", kind) for kind in ("ConfigMap", "PersistentVolumeClaim", "Pod", "Secret", "Service", "ServiceAccount")),
    ("batch", "v1", "Job"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    *(("rbac.authorization.k8s.io", "v1", f"{of}{kind}") for of in ("", "Cluster") for kind in ("Role", "RoleBinding")),
}
KINDS = "x-kubernetes-group-version-kind"
REFERENCE = "#/definitions/"


def undescribed(schema: Any, names: bool = False) -> Any:
    """`names`: the keys are those of properties or definitions, one of which may be called description."""
    if isinstance(schema, list):
        return [undescribed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: undescribed(value, names=not names and key in ("properties", "definitions"))
        for key, value in schema.items()
        if names or key != "description"
    }


def with_additions(name: str, published: Any) -> Any:
    """As the chart installs it: pods are described by Kubernetes itself."""
    made = copy.deepcopy(published)
    made["metadata"].pop("creationTimestamp", None)
    if name != "elasticjob":
        return made
    made["spec"]["names"]["shortNames"] = ["ej"]
    [version] = made["spec"]["versions"]
    phase, age = version["additionalPrinterColumns"]
    nodes = {"name": "Nodes", "type": "integer", "jsonPath": ".status.status.replicaStatuses.worker.active"}
    restarts = {"name": "Restarts", "type": "integer", "jsonPath": ".status.restarts"}
    version["additionalPrinterColumns"] = [phase, nodes, restarts, age]
    top = version["schema"]["openAPIV3Schema"]["properties"]
    replica = top["spec"]["properties"]["replicaSpecs"]["additionalProperties"]["properties"]
    replica["template"] = {"description": replica["template"]["description"]} | undescribed(replica["template"])
    replica["restartCounts"] = {"description": "RestartCounts is another name of restartCount.", "type": "integer"}
    told = "Restarts is how often pods of the job were made anew after a failure of their own."
    top["status"]["properties"]["restarts"] = {"description": told, "format": "int32", "type": "integer"}
    # Without it no budget of disruptions lets a drain take a pod; and `kubectl scale` works.
    version["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicaSpecs.worker.replicas",
        "statusReplicasPath": ".status.status.replicaStatuses.worker.active",
    }
    return made


def references(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(references, schema), set())
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].removeprefix(REFERENCE)} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(references, schema.values()), set())


def reached(definitions: dict[str, Any]) -> dict[str, Any]:
    """What the kinds of BUILT_IN are made of."""
    wanted = {
        name
        for name, schema in definitions.items()
        for kind in schema.get(KINDS, [])
        if (kind["group"], kind["version"], kind["kind"]) in BUILT_IN
    }
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        found[name] = definitions[name]
        wanted |= references(found[name]) - found.keys()
    # DeleteOptions and the like name a hundred groups that they belong to as well.
    def of_one_kind(schema: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in schema.items() if key != KINDS or len(value) == 1}

    return {name: of_one_kind(found[name]) for name in sorted(found)}


def write(name: str, content: Any) -> None:
    (HERE / name).write_text(json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n")


def main(folder: Path) -> None:
    for name, file in CRDS.items():
        published = yaml.safe_load((folder / file).read_text())
        write(f"{name}.json", undescribed(published))
        if name in INSTALLED:
            text = yaml.safe_dump(with_additions(name, published), sort_keys=False, width=120)
            (CHART / INSTALLED[name]).write_text(HEADER.format(changes=CHANGES[name]) + text)
    with gzip.open(folder / OPENAPI) as text:
        definitions = json.load(text)["definitions"]
    write("kubernetes.json", {"definitions": undescribed(reached(definitions), names=True)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
