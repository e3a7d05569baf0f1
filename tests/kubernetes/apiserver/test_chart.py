"""A real API server takes deploy/chart as it is rendered, and the operator may do there what it is for, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from rendering import CASES, Case, Document, missing, rendered
from server import Server
from test_admission import lost

if lacking := missing():
    pytest.skip(f"packages are missing: apt-get install {' '.join(lacking)}", allow_module_level=True)

# What the server has, as Helm asks it.
APIS = ("policy/v1beta1",)
PERSON = "system:serviceaccount:{}:{}"
ELASTIC, RBAC = "elastic.iml.github.io", "rbac.authorization.k8s.io"
OF_A_MASTER = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get"]},
    {"apiGroups": [ELASTIC], "resources": ["elasticjobs"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [ELASTIC], "resources": ["scaleplans"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [ELASTIC], "resources": ["scaleplans/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]


def namespaces(server: Server, *names: str) -> None:
    for name in names:
        made = server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert made.status in (201, 409), made.body


@pytest.mark.parametrize("name", CASES)
def test_it_is_admitted(server: Server, name: str) -> None:
    case = CASES[name]
    namespaces(server, case.namespace, case.values.get("watchNamespace") or case.namespace)
    chart = rendered(case, APIS)
    documents = chart.documents + chart.tests
    sent = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    done = server.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", input=sent)
    assert done.returncode == 0, done.stderr
    assert lost(documents, list(yaml.safe_load_all(done.stdout))) == []
    done = server.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=sent)
    assert done.returncode == 0, done.stderr


class Operator:
    """With the rights that a release has given it: calls are made in the name of its account."""

    def __init__(self, server: Server, case: Case) -> None:
        self.server, self.case = server, case
        namespaces(server, case.namespace, "training", "elsewhere")
        self.account = PERSON.format(case.namespace, case.release)
        installed = rendered(case, APIS).documents
        self.sent = json.dumps({"apiVersion": "v1", "kind": "List", "items": installed})
        done = server.kubectl("apply", "-f", "-", input=self.sent)
        assert done.returncode == 0, done.stderr

    def remove(self) -> None:
        self.server.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=self.sent)

    def may(self, what: str, account: str = "") -> bool:
        asked = self.server.kubectl("auth", "can-i", *what.split(), "--as", account or self.account)
        return asked.stdout.strip() == "yes"

    def create(self, document: Document) -> str:
        """Nothing, or why not."""
        done = self.server.kubectl("create", "--as", self.account, "-f", "-", input=json.dumps(document))
        return done.stderr

    def role(self, name: str, namespace: str, rules: list[Document]) -> str:
        about = {"name": name, "namespace": namespace}
        return self.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": about, "rules": rules})

    def binding(self, name: str, kind: str, role: str, namespace: str = "") -> str:
        """Of a master's account, which is called as the binding is."""
        about = {"name": name} | ({"namespace": namespace} if namespace else {})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "training"}
        return self.create({
            "apiVersion": f"{RBAC}/v1", "kind": "RoleBinding" if namespace else "ClusterRoleBinding", "metadata": about,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": [subject],
        })  # fmt: skip


@pytest.fixture(params=["marks", "marks-of-one-namespace"])
def operator(server: Server, request: pytest.FixtureRequest) -> Iterator[Operator]:
    made = Operator(server, CASES[request.param]._replace(release=request.param))
    yield made
    made.remove()


def test_the_operator_makes_a_master_and_its_rights(operator: Operator) -> None:
    name = f"{operator.case.release}-master"
    master = PERSON.format("training", name)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "training"}}
    for done in (
        operator.create(account),
        operator.role(name, "training", OF_A_MASTER),
        operator.binding(name, "Role", name, "training"),
        operator.binding(name, "ClusterRole", f"{operator.case.release}-machines"),
    ):
        assert done == ""
    for what in ("create pods -n training", "patch scaleplans --subresource=status -n training", "patch nodes"):
        assert operator.may(what, master), what
    for what in ("get secrets -n training", "create roles -n training", "list nodes", "create pods -n elsewhere"):
        assert not operator.may(what, master), what
    removed = operator.server.kubectl("delete", "clusterrolebinding", name, "--as", operator.account)
    assert removed.returncode == 0, removed.stderr
    assert not operator.may("patch nodes", master)


def test_it_gives_no_right_that_it_has_not(operator: Operator) -> None:
    forbidden = "is attempting to grant RBAC permissions not currently held"
    for resource, verb in (("secrets", "list"), ("pods", "deletecollection"), ("nodes", "get")):
        rules = [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]
        assert forbidden in operator.role(f"more-{resource}", "training", rules)
    assert forbidden in operator.binding("much-more", "ClusterRole", "cluster-admin")
    assert forbidden in operator.binding("more", "ClusterRole", "cluster-admin", "training")


def test_its_rights_are_those_of_its_scope(operator: Operator) -> None:
    home, everywhere = operator.case.namespace, not operator.case.values.get("watchNamespace")
    lease = operator.case.release
    for what in ("watch elasticjobs", "patch scaleplans --subresource=status", "create pods", "get secrets"):
        assert operator.may(f"{what} -n training"), what
        assert operator.may(f"{what} -n elsewhere") == everywhere, what
    for what in ("create leases", f"get leases/{lease}", f"update leases/{lease}"):
        assert operator.may(f"{what} -n {home}"), what
        assert not operator.may(f"{what} -n training"), what
    never = ["patch nodes", "list secrets -n training", "get leases/another -n " + home, "create clusterroles"]
    never += ["update clusterrolebindings", "get pods --subresource=exec -n training", "bind clusterroles/cluster-admin"]
    for what in never:
        assert not operator.may(what), what


def test_a_job_is_kept_with_its_restarts(server: Server) -> None:
    """And listed by its short name, with the columns that the chart gives it."""
    made = server.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": f"{ELASTIC}/v1alpha1", "kind": "ElasticJob", "metadata": {"name": "kept"},
        "spec": {"replicaSpecs": {"worker": {"replicas": 2, "restartCounts": 3}}},
    }))  # fmt: skip
    assert made.returncode == 0, made.stderr
    path = f"/apis/{ELASTIC}/v1alpha1/namespaces/default/elasticjobs/kept"
    body = server.get(path).body
    assert body["spec"]["replicaSpecs"]["worker"] == {"replicas": 2, "restartCounts": 3}
    of_pods = {"conditions": [], "replicaStatuses": {"worker": {"active": 2}}}
    body["status"] = {"phase": "Running", "restarts": 1, "status": of_pods}
    assert server.ask("PUT", f"{path}/status", body).status == 200
    header, line = server.kubectl("get", "ej", "kept").stdout.splitlines()
    assert header.split() == ["NAME", "PHASE", "NODES", "RESTARTS", "AGE"]
    assert line.split()[:4] == ["kept", "Running", "2", "1"]
