#!/usr/bin/env python3
"""trim.py FOLDER: makes the files of this folder of the schemas of FOLDER, as they were published (README.md has where).

Kept is what decides whether an object is valid, for the kinds that the manifests and their tests use. Descriptions, most
of the bytes, are not.
"""

from __future__ import annotations

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
}
OPENAPI = "kubernetes_openapi_v2.json.gz"
BUILT_IN = {
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
        write(f"{name}.json", undescribed(yaml.safe_load((folder / file).read_text())))
    with gzip.open(folder / OPENAPI) as text:
        definitions = json.load(text)["definitions"]
    write("kubernetes.json", {"definitions": undescribed(reached(definitions), names=True)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
