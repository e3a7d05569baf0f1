"""All objects of an API server, of each kind that it has: for tests of deletion."""

from __future__ import annotations

from dataclasses import dataclass

from server import Document, Server

JOB_UID = "troupe/job-uid"
# Events expire by themselves after an hour.
NEWS = ("events",)
# Kubernetes makes them for a service, with its labels.
OF_SERVICES = ("Endpoints", "EndpointSlice")


@dataclass(frozen=True)
class Kind:
    root: str
    plural: str
    name: str
    is_namespaced: bool

    def path(self, namespace: str) -> str:
        place = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{self.root}{place}/{self.plural}"


def kinds(server: Server) -> list[Kind]:
    """In one version each."""
    groups = server.get("/apis").body["groups"]
    roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    found = []
    for root in roots:
        for each in server.get(root).body.get("resources", []):
            is_kept = {"list", "delete"} <= set(each["verbs"]) and "/" not in each["name"]
            if is_kept and each["name"] not in NEWS:
                found.append(Kind(root, each["name"], each["kind"], each["namespaced"]))
    return found


def all_objects(server: Server, namespace: str = "") -> dict[str, Document]:
    """By "KIND NAME"; of a namespace without what belongs to none."""
    found = {}
    for kind in kinds(server):
        if namespace and not kind.is_namespaced:
            continue
        for item in server.get(kind.path(namespace)).body.get("items") or []:
            about = item["metadata"]
            where = f"{about['namespace']}/" if kind.is_namespaced and not namespace else ""
            found[f"{kind.name} {where}{about['name']}"] = item
    return found


def owners_of(document: Document) -> set[str]:
    return {owner["uid"] for owner in document["metadata"].get("ownerReferences", [])}


def of_job(server: Server, uid: str, namespace: str = "") -> set[str]:
    """What has the job as its owner, or its uid as a label."""
    return {
        name
        for name, document in all_objects(server, namespace).items()
        if name.split()[0] not in OF_SERVICES and is_of(document, uid)
    }


def is_of(document: Document, uid: str) -> bool:
    labels = document["metadata"].get("labels", {})
    return uid in owners_of(document) or labels.get(JOB_UID) == uid
