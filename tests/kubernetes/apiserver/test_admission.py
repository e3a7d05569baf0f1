"""A real API server takes each manifest as it is, and drops nothing of it. `./x kubernetes` runs this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from controllers import documents
from kubelet import MANIFESTS
from server import STRANGER, Document, Server

MASTER = "system:serviceaccount:default:troupe-master"
# Of a Job, what came after 1.20.
NEWER = ("completionMode", "podFailurePolicy", "podReplacementPolicy")


def known_to_it(document: Document) -> Document:
    if (document["apiVersion"], document["kind"]) == ("batch/v1", "Job"):
        document["spec"] = {key: value for key, value in document["spec"].items() if key not in NEWER}
    return document


def lost(sent: Any, kept: Any, where: str = "") -> list[str]:
    """What of the one is not in the other."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        gone = [f"{where}.{key}" for key in sent.keys() - kept.keys()]
        return gone + [line for key in sent.keys() & kept.keys() for line in lost(sent[key], kept[key], f"{where}.{key}")]
    if isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        return [line for i, pair in enumerate(zip(sent, kept)) for line in lost(*pair, f"{where}[{i}]")]
    return [] if sent == kept else [f"{where}: {sent!r} became {kept!r}"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.stem)
def test_it_is_admitted(server: Server, manifest: Path) -> None:
    for document in map(known_to_it, documents(manifest)):
        done = server.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(document))
        assert done.returncode == 0, done.stderr
        assert lost(document, json.loads(done.stdout)) == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.stem)
def test_it_is_applied_on_the_servers_side(server: Server, manifest: Path) -> None:
    """Where a field that no schema has is refused."""
    for document in map(known_to_it, documents(manifest)):
        done = server.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=json.dumps(document))
        assert done.returncode == 0, done.stderr
        assert "serverside-applied (server dry run)" in done.stdout


def test_what_is_wrong_is_refused(server: Server) -> None:
    [job] = documents(next(m for m in MANIFESTS if m.stem == "volcano-job"))
    job["spec"]["tasks"][0]["replicas"] = "four"
    done = server.kubectl("create", "--validate=false", "--dry-run=server", "-f", "-", input=json.dumps(job))
    assert done.returncode != 0 and "spec.tasks.replicas" in done.stderr, done.stderr
    job["spec"]["tasks"][0] |= {"replicas": 4, "replica": 4}
    done = server.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(job))
    assert done.returncode != 0 and 'unknown field "replica"' in done.stderr, done.stderr


def test_rights_are_looked_at(server: Server) -> None:
    [policy] = documents(next(m for m in MANIFESTS if m.stem == "network-policy"))
    create = ("create", "--validate=false", "--dry-run=server", "-f", "-")
    done = server.kubectl(*create, input=json.dumps(policy), token=STRANGER)
    told = 'User "stranger" cannot create resource "networkpolicies"'
    assert done.returncode != 0 and told in done.stderr, done.stderr
    assert server.get("/api", token="unknown").status == 401


def test_a_master_may_mark_machines_and_no_more(server: Server) -> None:
    manifest = next(m for m in MANIFESTS if m.stem == "mark-faulty")
    assert server.kubectl("apply", "-f", manifest).returncode == 0

    def may(*what: str) -> bool:
        return server.kubectl("auth", "can-i", *what, "--as", MASTER).stdout.strip() == "yes"

    for what in ("get nodes", "patch nodes", "list pods"):
        assert may(*what.split()), what
    for what in ("list nodes", "delete nodes", "delete pods", "get secrets", "list pods -n kube-system"):
        assert not may(*what.split()), what


def test_the_docs_make_the_token(server: Server) -> None:
    """The command of docs/kubernetes.md, without openssl: the token passes by no argument."""
    create = ("create", "secret", "generic", "words-token", "--from-file=token=/dev/stdin")
    made = server.kubectl(*create, input="a" * 64 + "\n")
    assert made.returncode == 0, made.stderr
    kept = json.loads(server.kubectl("get", "secret", "words-token", "-o", "json").stdout)
    assert kept["data"].keys() == {"token"}
