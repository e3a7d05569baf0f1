"""What deploy/chart promises, rendered as Helm renders it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from rendering import APIS, CASES, CHART, DIGEST, ROOT, TEN_NODES, Case, Document, Rendered, answer, missing, rendered
from validator import wrong

if lacking := missing():
    pytest.skip(
        f"the chart is not rendered, packages are missing: apt-get install {' '.join(lacking)}", allow_module_level=True
    )

ELASTIC = "elastic.iml.github.io"
# What the operator gives to a job's master: (API group, resources, verbs).
OF_MASTERS = [
    ("", "pods", "get list watch create delete"),
    ("", "pods/status", "get"),
    (ELASTIC, "elasticjobs", "get list watch"),
    (ELASTIC, "scaleplans", "get list watch patch"),
    (ELASTIC, "scaleplans/status", "get patch"),
    ("", "configmaps", "get create update patch"),
    ("", "events", "create patch"),
]
# Of what a rendering has, beside what all have.
ALWAYS = ["ConfigMap", "Deployment", "PodDisruptionBudget", "Role", "RoleBinding", "ServiceAccount"]
OF_THE_CLUSTER, OF_ONE = ["ClusterRole", "ClusterRoleBinding"], ["Role", "RoleBinding"]
BINDER = ["ClusterRole", "ClusterRole", "ClusterRoleBinding"]
SCOPES = {
    "defaults": OF_THE_CLUSTER,
    "guide": OF_THE_CLUSTER,
    "names-and-tags": OF_THE_CLUSTER,
    "one-namespace": OF_ONE,
    "monitored": [*OF_THE_CLUSTER, "PodMonitor"],
    "monitored-masters": [*OF_ONE, "PodMonitor", "PodMonitor"],
    "marks": OF_THE_CLUSTER + BINDER,
    "marks-of-one-namespace": OF_ONE + BINDER,
    "long": OF_ONE + BINDER,
    "all": OF_THE_CLUSTER,
}
COMMANDS = {
    "defaults": (
        "actor-operator --master-image=troupe-launcher:0.1.0 --master-image-pull-policy=IfNotPresent"
        " --lease-name=troupe --topology-config-map=node-topology-config --mark-faulty=none"
        " --metrics-listen=9402 --gang=none"
    ),
    "guide": (
        "actor-operator --master-image=registry.local/dlrover-master:v0.7.0 --master-image-pull-policy=IfNotPresent"
        " --lease-name=troupe --topology-config-map=node-topology-config --mark-faulty=none --metrics-listen=9402"
        " --gang=volcano --group-size=8 --group-label=example.com/group"
    ),
    "marks-of-one-namespace": (
        "actor-operator --namespace=training --master-image=troupe-launcher:0.1.0"
        " --master-image-pull-policy=IfNotPresent --lease-name=troupe --topology-config-map=node-topology-config"
        " --mark-faulty=cordon --metrics-listen=9402 --gang=none"
    ),
    "monitored-masters": (
        "actor-operator --namespace=training --master-image=troupe-launcher:0.1.0"
        " --master-image-pull-policy=IfNotPresent --lease-name=troupe --topology-config-map=node-topology-config"
        " --mark-faulty=none --metrics-listen=8080 --master-metrics-port=9500 --gang=none"
    ),
    "all": (
        "actor-operator --master-image=registry.example.com:5000/a_team/ai/troupe-launcher:0.1.0"
        " --master-image-pull-policy=Always --lease-name=troupe --topology-config-map=node-topology-config"
        " --mark-faulty=none --metrics-listen=9402 --gang=scheduler-plugins"
    ),
}

of_each_case = pytest.mark.parametrize("name", CASES)


@cache
def made(name: str) -> Rendered:
    return rendered(CASES[name])


def operator(name: str) -> Document:
    [container] = made(name).of("Deployment")["spec"]["template"]["spec"]["containers"]
    return container


def worker(name: str) -> Document:
    """A pod's spec of the job that `helm test` runs."""
    return made(name).test("ElasticJob")["spec"]["replicaSpecs"]["worker"]["template"]["spec"]


def rules(name: str) -> list[Document]:
    """What the operator may do where its jobs are."""
    scope = made(name).of("Deployment")["metadata"]["name"]
    kind = "Role" if CASES[name].values.get("watchNamespace") else "ClusterRole"
    [role] = [d for d in made(name).documents if (d["kind"], d["metadata"]["name"]) == (kind, scope)]
    return role["rules"]


def may(of: list[Document], group: str, resource: str, verb: str) -> bool:
    return any(group in r["apiGroups"] and resource in r["resources"] and verb in r["verbs"] for r in of)


@of_each_case
def test_an_object_is_what_its_schema_says(name: str) -> None:
    for document in made(name).documents + made(name).tests:
        assert wrong(document) == []


@of_each_case
def test_what_is_installed_is_what_the_scope_needs(name: str) -> None:
    assert made(name).kinds == sorted(ALWAYS + SCOPES[name])


@of_each_case
def test_names_are_short_and_used_once(name: str) -> None:
    case, found = CASES[name], []
    for document in made(name).documents + made(name).tests:
        about = document["metadata"]
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", about["name"])
        assert all(len(value) <= 63 for value in about["labels"].values())
        own = [case.namespace, case.values.get("watchNamespace")]
        assert about.get("namespace") in ([None] if document["kind"].startswith("ClusterRole") else own)
        found.append((document["kind"], about.get("namespace"), about["name"]))
    assert len(set(found)) == len(found)


@of_each_case
def test_what_is_named_is_there(name: str) -> None:
    documents = made(name).documents + made(name).tests
    deployment, budget = made(name).of("Deployment"), made(name).of("PodDisruptionBudget")
    account = made(name).of("ServiceAccount")["metadata"]
    spec = deployment["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account["name"] and account["namespace"] == CASES[name].namespace
    selected = deployment["spec"]["selector"]["matchLabels"]
    assert selected == budget["spec"]["selector"]["matchLabels"]
    assert selected.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert not selected.items() <= made(name).test("Pod")["metadata"]["labels"].items()
    for binding in (d for d in documents if d["kind"].endswith("Binding")):
        role = (binding["roleRef"]["kind"], binding["metadata"].get("namespace"), binding["roleRef"]["name"])
        assert role in [(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in documents]
        of_the_test = binding in made(name).tests
        subject = made(name).test("ServiceAccount")["metadata"] if of_the_test else account
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": subject["name"], "namespace": CASES[name].namespace}
        ]


@of_each_case
def test_a_pod_has_no_rights_on_its_machine(name: str) -> None:
    of_the_operator, waits = made(name).of("Deployment")["spec"]["template"]["spec"], made(name).test("Pod")["spec"]
    for spec in (of_the_operator, waits, worker(name)):
        user = spec["securityContext"]
        assert user["runAsNonRoot"] and user["runAsUser"] > 0 and user["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = spec["containers"]
        own = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == own
        assert not any("hostPath" in volume for volume in spec.get("volumes", []))
    # What the user says of its worth, and of no other pod.
    assert "priorityClassName" not in waits and "priorityClassName" not in worker(name)
    assert of_the_operator.get("priorityClassName") == CASES[name].values.get("priorityClassName")
    assert worker(name)["automountServiceAccountToken"] is False


def test_replicas_prefer_different_machines() -> None:
    spec = made("defaults").of("Deployment")["spec"]
    [apart] = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spec["replicas"] == 2 and made("one-namespace").of("Deployment")["spec"]["replicas"] == 1
    assert apart["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert apart["podAffinityTerm"]["labelSelector"] == spec["selector"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_is(name: str) -> None:
    assert " ".join(operator(name)["command"]) == COMMANDS[name]


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("defaults", "troupe-launcher:0.1.0"),
        ("guide", "registry.local/elasticjob-controller:v0.7.0"),
        ("names-and-tags", "operators/actor-operator:2"),
        ("all", f"registry.example.com:5000/a_team/ai/troupe-launcher@{DIGEST}"),
    ],
)
def test_the_image_is(name: str, image: str) -> None:
    assert operator(name)["image"] == image
    for spec in (made(name).test("Pod")["spec"], worker(name)):
        assert [container["image"] for container in spec["containers"]] == [image]


def test_the_lists_of_values_arrive() -> None:
    values, spec = CASES["all"].values, made("all").of("Deployment")["spec"]["template"]["spec"]
    for spec in (spec, made("all").test("Pod")["spec"], worker("all")):
        for key in ("imagePullSecrets", "nodeSelector", "tolerations"):
            assert spec[key] == values[key]
    spec = made("all").of("Deployment")["spec"]["template"]["spec"]
    assert (spec["affinity"], spec["priorityClassName"]) == (values["affinity"], values["priorityClassName"])
    assert operator("all")["resources"] == {"requests": values["resources"]["requests"]}


@of_each_case
def test_a_kubelet_asks_where_the_operator_listens(name: str) -> None:
    [port] = operator(name)["ports"]
    assert f"--metrics-listen={port['containerPort']}" in operator(name)["command"]
    asked = {probe: operator(name)[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {get["port"] for get in asked.values()} == {port["name"]}


def test_monitors_find_the_operator_and_masters() -> None:
    alone, both = made("monitored").of("PodMonitor"), made("monitored-masters").of("PodMonitor", "-masters")
    pod = made("monitored").of("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert alone["spec"]["selector"]["matchLabels"].items() <= pod.items()
    assert "namespaceSelector" not in alone["spec"], "the operator is in the monitor's own namespace"
    assert both["spec"]["selector"]["matchLabels"] == {"elasticjob.dlrover/replica-type": "dlrover-master"}
    assert both["spec"]["namespaceSelector"] == {"matchNames": ["training"]}
    assert both["metadata"]["labels"]["release"] == "prometheus"
    everywhere = rendered(Case({"metrics": {"masterPort": 9500}, "podMonitor": {"enabled": True}}))
    assert everywhere.of("PodMonitor", "-masters")["spec"]["namespaceSelector"] == {"any": True}
    for monitor in (alone, both):
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] == operator("monitored")["ports"][0]["name"] == "metrics"


@of_each_case
def test_the_chart_s_test_looks_at_its_job_and_no_more(name: str) -> None:
    job, tests = made(name).test("ElasticJob")["metadata"], made(name).tests
    assert [d["kind"] for d in tests][-2:] == ["ElasticJob", "Pod"], "the last that is made waits"
    [rule] = made(name).test("Role")["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["elasticjobs"], [job["name"]], ["get"])
    assert job["namespace"] == made(name).test("Role")["metadata"]["namespace"]
    [container] = made(name).test("Pod")["spec"]["containers"]
    assert container["command"][:3] == [
        "actor-operator",
        f"--wait-for-job={job['name']}",
        f"--namespace={job['namespace']}",
    ]


def test_the_network_is_as_it_was_given() -> None:
    for name, lines in (("defaults", ""), ("guide", TEN_NODES)):
        config = made(name).of("ConfigMap")
        assert (config["metadata"]["name"], config["data"]) == ("node-topology-config", {"topology_config": lines})


def all_rules(name: str) -> Iterator[Document]:
    return itertools.chain.from_iterable(d["rules"] for d in made(name).documents if d["kind"].endswith("Role"))


@of_each_case
def test_a_right_names_what_it_is_for(name: str) -> None:
    for rule in all_rules(name):
        words = list(itertools.chain.from_iterable(rule.values()))
        assert not any("*" in word for word in words)
        assert not {"escalate", "impersonate", "deletecollection"} & set(rule["verbs"])
        assert not {"pods/exec", "serviceaccounts/token"} & set(rule["resources"])


@of_each_case
def test_the_operator_has_what_it_gives_to_masters(name: str) -> None:
    for group, resource, verbs in OF_MASTERS:
        for verb in verbs.split():
            assert may(rules(name), group, resource, verb), f"{verb} {resource}"


@of_each_case
def test_secrets_are_not_listed(name: str) -> None:
    verbs = {verb for rule in all_rules(name) if "secrets" in rule["resources"] for verb in rule["verbs"]}
    assert verbs == {"get", "create", "patch", "delete"}


@of_each_case
def test_only_its_own_lease_is_changed(name: str) -> None:
    role = made(name).of("Role", "-lease")
    [lease] = [word.removeprefix("--lease-name=") for word in operator(name)["command"] if "--lease-name" in word]
    assert role["metadata"]["namespace"] == CASES[name].namespace
    named = {verb: rule.get("resourceNames") for rule in role["rules"] for verb in rule["verbs"]}
    assert named == {"create": None, "get": [lease], "update": [lease]}
    assert not any("leases" in rule["resources"] for rule in rules(name))


@of_each_case
def test_machines_are_changed_by_masters_and_only_on_request(name: str) -> None:
    outside = {"nodes", "clusterrolebindings", "clusterroles"}
    of_machines = [rule for rule in all_rules(name) if outside & set(rule["resources"])]
    if CASES[name].values.get("machines", {}).get("markFaulty", "none") == "none":
        assert of_machines == []
        return
    machines = made(name).of("ClusterRole", "-machines")
    assert machines["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    bindings = made(name).of("ClusterRole", "-bindings")["rules"]
    named = {(r["resources"][0], verb): r.get("resourceNames") for r in bindings for verb in r["verbs"]}
    assert named == {
        ("clusterroles", "bind"): [machines["metadata"]["name"]],
        ("clusterrolebindings", "create"): None,
        ("clusterrolebindings", "patch"): None,
        ("clusterrolebindings", "delete"): None,
    }
    assert of_machines == [*machines["rules"], *bindings]
    bound = [d["roleRef"]["name"] for d in made(name).documents if d["kind"].endswith("Binding")]
    assert machines["metadata"]["name"] not in bound


@pytest.mark.parametrize(
    ("name", "groups"),
    [("defaults", set()), ("guide", {"scheduling.volcano.sh"}), ("all", {"scheduling.x-k8s.io"})],
)
def test_groups_of_pods_are_of_the_scheduler_that_is_chosen(name: str, groups: set[str]) -> None:
    of_pods = [rule for rule in rules(name) if "podgroups" in rule["resources"]]
    assert {group for rule in of_pods for group in rule["apiGroups"]} == groups
    assert all(set(rule["verbs"]) == {"get", "create", "patch", "delete"} for rule in of_pods)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"replica": 3}, "Additional property replica is not allowed"),
        ({"replicas": 0}, "replicas: Must be greater than or equal to 1"),
        ({"replicas": "2"}, "replicas: Invalid type. Expected: integer, given: string"),
        ({"replicas": None}, "replicas is required"),
        ({"registry": "https://registry.local"}, "registry: Does not match pattern"),
        ({"registry": "registry.local:port"}, "registry: Does not match pattern"),
        ({"controller": {"image": {"tag": "a tag"}}}, "controller.image.tag: Does not match pattern"),
        ({"controller": {"image": {"tag": 1.1}}}, "controller.image.tag: Invalid type. Expected: string"),
        ({"controller": {"image": "Upper/Case"}}, "controller.image: Does not match pattern"),
        ({"dlroverMaster": {"image": {"name": ""}}}, "dlroverMaster.image.name: Does not match pattern"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy: imagePullPolicy must be one of the following"),
        ({"imagePullSecrets": ["registry"]}, "imagePullSecrets.0: Invalid type. Expected: object, given: string"),
        ({"topoMapper": {"topologyConfig": "a b c"}}, "topoMapper: Additional property topologyConfig is not allowed"),
        ({"topoMapper": {"topology_config": ["a b c"]}}, "topoMapper.topology_config: Invalid type"),
        ({"gangScheduling": {"enabled": "yes"}}, "gangScheduling.enabled: Invalid type. Expected: boolean"),
        ({"gangScheduling": {"scheduler": "kueue"}}, "gangScheduling.scheduler must be one of"),
        ({"gangScheduling": {"groupSize": 0}}, "gangScheduling.groupSize: Must be greater than or equal to 1"),
        ({"gangScheduling": {"topologyLabelKey": "a b"}}, "gangScheduling.topologyLabelKey: Does not match pattern"),
        ({"watchNamespace": "a,b"}, "watchNamespace: Does not match pattern"),
        ({"watchNamespace": "n" * 64}, "watchNamespace: String length must be less than or equal to 63"),
        ({"machines": {"markFaulty": "drain"}}, "machines.markFaulty must be one of the following"),
        ({"resources": {"limit": {}}}, "resources: Additional property limit is not allowed"),
        ({"metrics": {"port": 80}}, "metrics.port: Must be greater than or equal to 1024"),
        ({"metrics": {"masterPort": 50001}}, "metrics.masterPort: Must not validate the schema"),
        ({"metrics": {"masterPort": 80}}, "metrics.masterPort: Must not validate the schema"),
        ({"podMonitor": {"enabled": True, "interval": "soon"}}, "podMonitor.interval: Does not match pattern"),
        ({"podMonitor": {"enabled": True, "interval": ""}}, "podMonitor.interval: String length must be"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: Document, told: str) -> None:
    done = answer(Case(values))
    assert done.returncode == 1 and told in done.stderr, done.stderr


def test_an_older_cluster_has_an_older_budget() -> None:
    assert made("defaults").of("PodDisruptionBudget")["apiVersion"] == "policy/v1"
    older = rendered(CASES["defaults"], ["policy/v1beta1"])
    assert older.of("PodDisruptionBudget")["apiVersion"] == "policy/v1beta1"


def test_the_notes_warn_of_what_is_not_as_it_looks() -> None:
    """And only then."""
    quiet, guide = made("defaults").notes, made("guide").notes
    assert "WARNING" not in quiet + guide and "rbacProxy" not in quiet and "rbacProxy is not used" in guide
    without = rendered(CASES["guide"], ["policy/v1"]).notes
    assert "WARNING: gangScheduling.scheduler is volcano, and this cluster has no PodGroups" in without
    assert "with the master's account" in made("marks").notes and "account" not in quiet
    assert "the namespace training" in made("one-namespace").notes


def test_the_chart_has_the_programs_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert [about["version"], about["appVersion"]] == [(ROOT / "VERSION").read_text().strip()] * 2


def leaves(values: Any, at: str = "") -> Iterator[str]:
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from leaves(value, f"{at}.{key}".lstrip("."))
    else:
        yield at


def test_the_docs_have_each_value() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text()
    [section] = re.findall(r"^## The operator and its chart\n(.*?)^## ", page, re.M | re.S)
    rows = re.findall(r"^\| (`.*?) \|", section, re.M)
    told = {value for row in rows for value in re.findall(r"`([\w.]+)`", row)}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert told == set(leaves(values | {"resources": "", "rbacProxy": ""}))


def test_what_apis_are_asked_for_is_known() -> None:
    """A misspelt one would be asked for in vain, and silently so."""
    templates = "".join(file.read_text() for file in (CHART / "templates").rglob("*.*"))
    asked = re.findall(r"APIVersions\.Has \"([^\"]+)\"", templates)
    assert asked and set(asked) <= set(APIS)
