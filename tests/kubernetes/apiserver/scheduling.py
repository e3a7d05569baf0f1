"""Where a pod is placed: what a scheduler decides, of the parts of it that jobs use. Pure."""

from __future__ import annotations

from collections import Counter

from server import Document

ENDED = ("Succeeded", "Failed")
COUNTED = "nvidia.com/gpu"


def place_for(pod: Document, machines: list[Document], pods: list[Document]) -> tuple[str, str]:
    """The name of the emptiest machine that takes the pod; or none, and why."""
    on: dict[str, list[Document]] = {machine["metadata"]["name"]: [] for machine in machines}
    for other in pods:
        if other["spec"].get("nodeName") in on and other["status"].get("phase") not in ENDED:
            on[other["spec"]["nodeName"]].append(other)
    obstacles = {m["metadata"]["name"]: obstacle(pod, m, on[m["metadata"]["name"]]) for m in machines}
    free = [name for name, why in obstacles.items() if not why]
    if free:
        return min(free, key=lambda name: (len(on[name]), name)), ""
    counted = ", ".join(f"{n} {why}" for why, n in sorted(Counter(obstacles.values()).items()))
    return "", f"0/{len(machines)} nodes are available: {counted}."


def obstacle(pod: Document, machine: Document, on_it: list[Document]) -> str:
    """What keeps the pod from this machine; nothing: it can go there."""
    spec, labels = pod["spec"], machine["metadata"].get("labels", {})
    for taint in machine["spec"].get("taints", []):
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated(taint, spec.get("tolerations", [])):
            return f"node(s) had taint {{{taint['key']}: {taint.get('value', '')}}}, that the pod didn't tolerate"
    if machine["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    if not spec.get("nodeSelector", {}).items() <= labels.items() or not attracted(spec, machine):
        return "node(s) didn't match node selector"
    room = int(machine["status"].get("allocatable", {}).get(COUNTED, 0))
    if asked(pod) > room - sum(map(asked, on_it)):
        return f"Insufficient {COUNTED}"
    return ""


def asked(pod: Document) -> int:
    return sum(int(c.get("resources", {}).get("requests", {}).get(COUNTED, 0)) for c in pod["spec"]["containers"])


def tolerated(taint: Document, tolerations: list[Document]) -> bool:
    def covers(t: Document) -> bool:
        key = t.get("key") in (None, "", taint["key"])
        value = t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", "")
        return key and value and t.get("effect") in (None, "", taint["effect"])

    return any(map(covers, tolerations))


def attracted(spec: Document, machine: Document) -> bool:
    """By the required node affinity: one of its terms holds."""
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": machine["metadata"]["name"]}
    return any(
        all(holds(e, machine["metadata"].get("labels", {})) for e in term.get("matchExpressions", []))
        and all(holds(e, fields) for e in term.get("matchFields", []))
        for term in required["nodeSelectorTerms"]
    )


def holds(expression: Document, labels: dict[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(f"no scheduler here knows {expression['operator']}")
