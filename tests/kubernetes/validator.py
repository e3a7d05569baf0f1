"""Is an object what a server would take? By the OpenAPI schemas in schemas/, without a server.

Checked are types, what is required, enumerations, patterns and bounds. A field that no schema has is an error: a server
drops it in silence, or refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
HERE = Path(__file__).resolve().parent / "schemas"
CRDS = ("volcano_job", "hypernode", "jobset", "trainjob", "podmonitor")
OF_THE_CHART = Path(__file__).resolve().parents[2] / "deploy/chart/crds"
METADATA = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


@cache
def definitions() -> Schema:
    return json.loads((HERE / "kubernetes.json").read_text())["definitions"]


@cache
def crd(name: str) -> Schema:
    return json.loads((HERE / f"{name}.json").read_text())


@cache
def custom_resources() -> list[Schema]:
    """Their definitions: those that others install, and the chart's own."""
    own = [yaml.safe_load(file.read_text()) for file in sorted(OF_THE_CHART.glob("*.yaml"))]
    return [crd(name) for name in CRDS] + own


def training_runtime() -> Schema:
    """Its definition is a JobSet's within a little more; of that little, what the Trainer's plug-in for torch reads."""
    of_jobset = crd("jobset")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    size = {"x-kubernetes-int-or-string": True}
    policy = {"numNodes": {"type": "integer"}, "torch": {"type": "object", "properties": {"numProcPerNode": size}}}
    template = {"type": "object", "properties": {"metadata": METADATA, "spec": of_jobset}}
    spec = {"mlPolicy": {"type": "object", "properties": policy}, "template": template}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}


@cache
def schemas() -> dict[tuple[str, str], Schema]:
    """By apiVersion and kind."""
    found: dict[tuple[str, str], Schema] = {}
    for schema in definitions().values():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            version = f"{kind['group']}/{kind['version']}".removeprefix("/")
            found[version, kind["kind"]] = schema
    for definition in custom_resources():
        spec = definition["spec"]
        for version in spec["versions"]:
            of_version = version["schema"]["openAPIV3Schema"]
            found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = of_version
    found["trainer.kubeflow.org/v1alpha1", "TrainingRuntime"] = training_runtime()
    return found


def wrong(document: Any) -> list[str]:
    """One line for each thing that is wrong: where, and why."""
    named = (document.get("apiVersion"), document.get("kind"))
    if named not in schemas():
        return [f"there is no schema for {named[1]} of {named[0]}"]
    schema = schemas()[named]
    # A custom resource's own schema says no more of these than that metadata is an object.
    known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": METADATA}
    return list(faults(document, schema | {"properties": schema["properties"] | known}, named[1]))


def faults(value: Any, schema: Schema, where: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = definitions()[schema["$ref"].removeprefix("#/definitions/")]
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield f"{where}: neither a number nor a string: {value!r}"
        elif isinstance(value, str):
            yield from text_faults(value, schema, where)
        return
    wanted = schema.get("type")
    no_number = wanted in ("integer", "number") and isinstance(value, bool)
    if wanted and (not isinstance(value, TYPES[wanted]) or no_number):
        yield f"{where}: no {wanted}: {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, dict):
        yield from object_faults(value, schema, where)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
            yield f"{where}: {len(value)} items"
        for index, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{where}[{index}]")
    elif isinstance(value, str):
        yield from text_faults(value, schema, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{where}: {value} is out of its bounds"


def text_faults(value: str, schema: Schema, where: str) -> Iterator[str]:
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{where}: {len(value)} characters"


def object_faults(value: dict[Any, Any], schema: Schema, where: str) -> Iterator[str]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where}: {name} is missing"
    for name, item in value.items():
        at = f"{where}.{name}"
        if not isinstance(name, str):
            yield f"{at}: the key is no string"
        elif name in properties:
            yield from faults(item, properties[name], at)
        elif more:
            yield from faults(item, more if isinstance(more, dict) else {}, at)
        elif properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{at}: there is no such field"
