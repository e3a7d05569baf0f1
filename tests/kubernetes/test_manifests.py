"""What each manifest of deploy/kubernetes promises, by its text alone."""

from __future__ import annotations

import copy
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import TOKEN
from controllers import Pod, documents, pods
from kubelet import MANIFESTS, ROOT
from validator import OF_THE_CHART, crd, custom_resources, wrong

OF_JOBS = [manifest for manifest in MANIFESTS if pods(documents(manifest))]
OBJECTS = [
    pytest.param(document, id=f"{manifest.stem}-{document['kind']}-{document['metadata']['name']}")
    for manifest in MANIFESTS
    for document in documents(manifest)
]
# 40 s are said by --shutdown-timeout; with --elastic-mode ucp 30 s for a save to begin and 60 s until it has ended come
# before the 30 s that are the default.
STOPS_WITHIN = {"--shutdown-timeout=40": 40, "--elastic-mode=ucp": 120}


def named(manifest: Path) -> str:
    return manifest.stem


@pytest.mark.parametrize("document", OBJECTS)
def test_an_object_is_what_its_schema_says(document: dict[str, Any]) -> None:
    assert wrong(document) == []


def set_in(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    *folders, last = path.split("/")
    place: Any = changed
    for folder in folders:
        place = place[int(folder) if folder.isdigit() else folder]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.mark.parametrize(
    ("file", "path", "value", "told"),
    [
        ("volcano-job", "spec/minAvailabel", 4, "Job.spec.minAvailabel: there is no such field"),
        ("volcano-job", "spec/minAvailable", "4", "Job.spec.minAvailable: no integer: '4'"),
        ("volcano-job", "spec/policies/0/event", "PodGone", "Job.spec.policies[0].event: 'PodGone' is none of"),
        ("volcano-job", "spec/tasks/0/template/spec/containers/0/name", None, "containers[0]: name is missing"),
        ("volcano-job", "metadata/labels", {"a": 1}, "Job.metadata.labels.a: no string: 1"),
        ("jobset", "spec/successPolicy/operator", "Most", "JobSet.spec.successPolicy.operator: 'Most' is none of"),
        ("indexed-job", "spec/template/spec/volumes/0/secret/defaultMode", "0440", "no integer: '0440'"),
        ("indexed-job", "spec/template/spec/containers/0/resources/limits", {"cpu": True}, "no string: True"),
        ("network-policy", "spec/ingres", [], "NetworkPolicy.spec.ingres: there is no such field"),
        ("hypernodes", "spec/members/0/type", "Switch", "HyperNode.spec.members[0].type: 'Switch' is none of"),
        ("trainjob", "spec/trainer/numNodes", 4.5, "TrainJob.spec.trainer.numNodes: no integer: 4.5"),
        ("elasticjob-guide", "spec/replicaSpecs/worker/restartCounts", "3", "worker.restartCounts: no integer: '3'"),
        ("elasticjob-guide", "spec/replicaSpecs/worker/restarts", 3, "worker.restarts: there is no such field"),
        ("elasticjob-swift", "spec/replicaSpecs/worker/template/spec/volumes/0/name", None, "[0]: name is missing"),
        ("storage", "apiVersion", "v2", "there is no schema for PersistentVolumeClaim of v2"),
    ],
)
def test_what_is_wrong_is_found(file: str, path: str, value: Any, told: str) -> None:
    manifest = next(m for m in MANIFESTS if m.stem == file)
    document = documents(manifest)[-1]
    assert any(told in line for line in wrong(set_in(document, path, value))), wrong(set_in(document, path, value))


def told_to_machines(schema: Any, at: str = "") -> dict[str, Any]:
    """Each of its values by the path: all but descriptions, which are for people."""
    if not isinstance(schema, dict) or not schema:
        return {at: schema}
    parts = [
        told_to_machines(value, f"{at}/{key}")
        for key, value in schema.items()
        # A dictionary is a property that is called so.
        if key != "description" or isinstance(value, dict)
    ]
    return {path: value for part in parts for path, value in part.items()}


@pytest.mark.parametrize(
    ("name", "added"),
    [
        (
            "elasticjob",
            {
                "/spec/properties/replicaSpecs/additionalProperties/properties/restartCounts",
                "/status/properties/restarts",
            },
        ),
        ("scaleplan", set()),
    ],
)
def test_the_chart_defines_what_was_published_and_little_more(name: str, added: set[str]) -> None:
    definition = yaml.safe_load((OF_THE_CHART / f"{name}s.yaml").read_text())
    assert wrong(definition) == []
    published, own = crd(name)["spec"], definition["spec"]
    for part in ("group", "scope"):
        assert own[part] == published[part]
    assert published["names"].items() <= own["names"].items()
    [theirs], [ours] = published["versions"], own["versions"]
    scale = ours["subresources"].pop("scale", None)
    assert theirs["name"] == ours["name"] and theirs["subresources"] == ours["subresources"] == {"status": {}}
    assert (scale is not None) == (name == "elasticjob")
    before, after = (told_to_machines(v["schema"]["openAPIV3Schema"]["properties"]) for v in (theirs, ours))
    assert before.items() <= after.items()
    assert {path.rpartition("/")[0] for path in after.keys() - before.keys()} == added


def test_a_job_is_listed_with_what_a_user_asks_first() -> None:
    of_jobs = next(d["spec"] for d in custom_resources() if d["spec"]["names"]["kind"] == "ElasticJob")
    [version] = of_jobs["versions"]
    columns = version["additionalPrinterColumns"]
    assert of_jobs["names"]["shortNames"] == ["ej"]
    assert [column["name"] for column in columns] == ["Phase", "Nodes", "Restarts", "Age"]
    for column in columns[:-1]:
        place = version["schema"]["openAPIV3Schema"]
        for word in column["jsonPath"].removeprefix(".").split("."):
            place = place["properties"][word] if "properties" in place else place["additionalProperties"]
        assert place["type"] == column["type"]


def all_pods() -> list[Any]:
    found = [(manifest.stem, pod) for manifest in OF_JOBS for pod in pods(documents(manifest))]
    return [pytest.param(pod, id=f"{name}-{pod.name}") for name, pod in found]


@pytest.mark.parametrize("pod", all_pods())
def test_a_pod_has_no_rights_and_no_secret_in_sight(pod: Pod) -> None:
    user, own = pod.spec["securityContext"], pod.container["securityContext"]
    assert user["runAsNonRoot"] and user["runAsUser"] > 0 and user["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert pod.spec["automountServiceAccountToken"] is False and "serviceAccountName" not in pod.spec
    [token] = [volume for volume in pod.spec["volumes"] if "secret" in volume]
    # What the launcher takes: root's, and readable by its group at most.
    assert token["secret"]["defaultMode"] == 0o440
    text = str(pod.container["command"]) + str(pod.container["env"])
    assert "secretKeyRef" not in text and TOKEN not in text and "--token" not in text
    assert {"name": "TROUPE_TOKEN_FILE", "value": "/run/secrets/troupe/token"} in pod.container["env"]


@pytest.mark.parametrize("pod", all_pods())
def test_a_pod_has_what_training_needs(pod: Pod) -> None:
    assert pod.container["resources"]["limits"].keys() >= {"cpu", "memory"}
    if pod.labels["app.kubernetes.io/component"] == "master":
        assert "actor-master" in pod.container["command"][-1]
        return
    assert pod.container["command"][0] == "actor-launcher"
    [memory] = [v["emptyDir"] for v in pod.spec["volumes"] if "emptyDir" in v]
    assert memory["medium"] == "Memory" and {"name": "shm", "mountPath": "/dev/shm"} in pod.container["volumeMounts"]
    [within] = [seconds for option, seconds in STOPS_WITHIN.items() if option in pod.container["command"]]
    assert pod.spec["terminationGracePeriodSeconds"] > within
    [apart] = pod.spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"].items() <= pod.labels.items()


@pytest.mark.parametrize("manifest", OF_JOBS, ids=named)
def test_what_a_job_names_is_there(manifest: Path) -> None:
    own = documents(manifest)
    everywhere = itertools.chain.from_iterable(documents(m) for m in MANIFESTS)
    claims = {d["metadata"]["name"] for d in everywhere if d["kind"] == "PersistentVolumeClaim"}
    [policy] = documents(next(m for m in MANIFESTS if m.stem == "network-policy"))
    admitted = policy["spec"]["podSelector"]["matchLabels"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": admitted}}]}]
    for pod in pods(own):
        mounts, volumes = pod.container["volumeMounts"], pod.spec["volumes"]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in volumes}
        assert {v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v} <= claims
        assert admitted.items() <= pod.labels.items()
    for service in (d for d in own if d["kind"] == "Service"):
        chosen = [pod for pod in pods(own) if service["spec"]["selector"].items() <= pod.labels.items()]
        assert chosen, service
        # Nodes look for each other before they are ready; a master that is not has to be refused.
        headless = service["spec"].get("clusterIP") == "None"
        assert service["spec"].get("publishNotReadyAddresses", False) == headless
        if headless:
            assert all(pod.subdomain == service["metadata"]["name"] for pod in chosen)


def test_rights_are_given_for_marking_machines_and_for_nothing_else() -> None:
    """The roles are those of docs/network-check.md."""
    given = [(m.stem, d) for m in MANIFESTS for d in documents(m) if d["kind"] in ("Role", "ClusterRole")]
    assert {manifest for manifest, _ in given} == {"mark-faulty"}
    page = (ROOT / "docs/network-check.md").read_text()
    [block] = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```$", page, re.M | re.S)
    told = {document["kind"]: document["rules"] for document in yaml.safe_load_all(block)}
    assert {document["kind"]: document["rules"] for _, document in given} == told


def volcano_policies() -> list[Any]:
    found = []
    for manifest in OF_JOBS:
        for document in documents(manifest):
            if document["apiVersion"].startswith("batch.volcano.sh/"):
                lists = [("job", document["spec"].get("policies", []))]
                lists += [(task["name"], task.get("policies", [])) for task in document["spec"]["tasks"]]
                found += [pytest.param(policies, id=f"{manifest.stem}-{of}") for of, policies in lists if policies]
    return found


@pytest.mark.parametrize("policies", volcano_policies())
def test_volcano_looks_at_exit_codes_before_it_looks_at_the_end_of_a_pod(policies: list[dict[str, Any]]) -> None:
    """The first that fits is taken, and PodFailed fits an exit code as well."""
    of_codes = ["exitCode" in policy for policy in policies]
    assert of_codes == sorted(of_codes, reverse=True)
    assert {"exitCode": 2, "action": "AbortJob"} in policies
    # What Volcano's own admission asks for.
    assert all(("exitCode" in policy) != ("event" in policy) for policy in policies)
    assert len({str(p.get("exitCode", p.get("event"))) for p in policies}) == len(policies)
