#!/usr/bin/env python3
"""actor-operator with many ElasticJobs at a real API server: its memory, and what it asks of the server. Only ours.

The driver is scheduler and kubelets: pods of nodes are made and said to run by it, no process runs in them. What is asked is what the
server itself writes down of the operator's account. Needs what `./x kubernetes` builds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import harness
from harness import Summary
from launchers import ROOT, actor_launcher

sys.path[:0] = [str(ROOT / "tests/kubernetes"), str(ROOT / "tests/kubernetes/apiserver")]
import yaml  # noqa: E402
from jobs import manifest  # noqa: E402
from server import Document, Server, for_1_20  # noqa: E402

NAMESPACE, OPERATOR = "jobs", "system:serviceaccount:jobs:operator"
JOBS = f"/apis/elastic.iml.github.io/v1alpha1/namespaces/{NAMESPACE}/elasticjobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WITHIN, AT_ONCE, IDLE = 600.0, 8, 60.0
AUDIT = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [OPERATOR]}, {"level": "None"}],
}  # fmt: skip


class Operator:
    def __init__(self, server: Server, directory: Path) -> None:
        account = {"metadata": {"name": "operator"}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": "operator", "namespace": NAMESPACE}
        made(server, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        made(server, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        made(server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", account | {"roleRef": role, "subjects": [subject]})
        token = made(server, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/operator/token", {"spec": {}})
        self.audit = directory / "audit.log"
        folder = directory / "account"
        folder.mkdir()
        (folder / "token").write_text(token["status"]["token"])
        (folder / "namespace").write_text(NAMESPACE)
        (folder / "ca.crt").write_bytes(server.authority)
        program = Path(actor_launcher().program).with_name("actor-operator")
        where = {"KUBERNETES_SERVICE_HOST": server.address, "KUBERNETES_SERVICE_PORT": str(server.port)}
        self.said = directory / "operator.err"
        self.process = subprocess.Popen(
            [program, "--master-image=local:1", f"--service-account={folder}"],
            env=os.environ | where, stderr=self.said.open("wb"), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def memory(self, what: str) -> float:
        """MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(what)[2].split()[0]) / 1024

    def processor(self) -> float:
        """Seconds, of all its threads."""
        times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def asked(self) -> Counter[str]:
        """Verbs and kinds of its requests; a watch counts when the server has begun to answer it."""
        lines = map(json.loads, self.audit.read_text().splitlines())
        return Counter(
            f"{line['verb']} {line['objectRef']['resource']}{'/' + sub if (sub := line['objectRef'].get('subresource')) else ''}"
            for line in lines
            if line["stage"] == ("ResponseStarted" if line["verb"] == "watch" else "ResponseComplete")
        )


def made(server: Server, path: str, document: Document) -> Document:
    answer = server.ask("POST", path, document)
    assert answer.status == 201, answer.body
    return answer.body


def until(condition: Callable[[], object], operator: Operator) -> None:
    ends = time.monotonic() + WITHIN
    while not condition():
        assert operator.process.poll() is None, operator.said.read_text()
        assert time.monotonic() < ends, operator.said.read_text()[-2000:]
        time.sleep(0.5)


def job(name: str, nodes: int) -> Document:
    return manifest(name, NAMESPACE, nodes)


def run_pod(server: Server, pod: Document) -> None:
    """As the machine's kubelet says it."""
    ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready", "ContainersReady")]
    path = f"{PODS}/{pod['metadata']['name']}"
    status = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": ready}
    answer = server.patch(f"{path}/status", {"status": status})
    assert answer.status == 200, answer.body


def add_node(server: Server, owner: Document, number: int) -> None:
    """As the job's master makes it."""
    name = owner["metadata"]["name"]
    labels = {"name": name, "replica-type": "worker", "replica-index": str(number), "rank-index": str(number)}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": owner["metadata"]["uid"], "controller": True}
    template = owner["spec"]["replicaSpecs"]["worker"]["template"]
    pod = {
        "metadata": {
            "name": f"{name}-edljob-worker-{number}", "ownerReferences": [reference],
            "labels": {f"elasticjob.dlrover/{key}": value for key, value in labels.items()},
        },
        "spec": template["spec"],
    }  # fmt: skip
    run_pod(server, made(server, PODS, pod))


def listed(server: Server, path: str) -> list[Document]:
    return server.get(f"{path}{'&' if '?' in path else '?'}resourceVersion=0").body["items"]


@contextmanager
def cluster(directory: Path, programs: Path) -> Iterator[Server]:
    policy = directory / "policy.json"
    policy.write_text(json.dumps(AUDIT))
    server = Server(programs, directory)
    server.more = ("--audit-policy-file", policy, "--audit-log-path", directory / "audit.log")
    try:
        server.start()
        for file in sorted((ROOT / "deploy/chart/crds").glob("*.yaml")):
            server.define(for_1_20(yaml.safe_load(file.read_text())))
        yield server
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200, help="default 200")
    parser.add_argument("--nodes", type=int, default=100, help="of each job; default 100")
    parser.add_argument("--apiserver", type=Path, default=ROOT / "build/kubernetes", help="default build/kubernetes")
    chosen = parser.parse_args()
    if not (chosen.apiserver / "kube-apiserver").exists():
        sys.exit(f"{chosen.apiserver} has no kube-apiserver: ./x kubernetes builds it")
    rows: list[list[str]] = []
    results: dict[str, object] = {}

    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory), chosen.apiserver) as server:
        operator = Operator(server, Path(directory))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            until(lambda: "holds the lease" in operator.said.read_text(), operator)
            last = [time.monotonic(), operator.processor(), operator.asked()]

            def told(what: str) -> None:
                """Of the time since the last row."""
                now, processor, asked = time.monotonic(), operator.processor(), operator.asked()
                new = asked - last[2]
                memory = operator.memory("VmRSS:")
                rows.append([
                    what, harness.short(now - last[0]), harness.short(memory),
                    harness.short(processor - last[1]), str(new.total()), harness.short(new.total() / (now - last[0])),
                ])  # fmt: skip
                results[what] = {"seconds": now - last[0], "resident MiB": memory, "processor s": processor - last[1], "requests": new}
                harness.progress(f"{what}: {dict(new)}")
                last[:] = [now, processor, asked]

            told("no job")
            for each in threads.map(lambda n: made(server, JOBS, job(f"job-{n}", chosen.nodes)), range(chosen.jobs)):
                assert each
            until(lambda: len(listed(server, PODS)) == chosen.jobs, operator)
            told(f"{chosen.jobs} jobs are applied, until each has its master's pod")
            for pod in listed(server, PODS):
                run_pod(server, pod)
            owners = listed(server, JOBS)
            work = [(owner, number) for number in range(chosen.nodes) for owner in owners]
            list(threads.map(lambda each: add_node(server, *each), work))

            def active() -> list[int]:
                statuses = [one.get("status", {}).get("status", {}) for one in listed(server, JOBS)]
                return [s.get("replicaStatuses", {}).get("worker", {}).get("active", 0) for s in statuses]

            until(lambda: active() == [chosen.nodes] * chosen.jobs, operator)
            told(f"{chosen.nodes} pods of each begin to run, until all statuses say so")
            time.sleep(IDLE)
            told(f"{IDLE:.0f} s without an event")
        results["peak resident MiB"] = operator.memory("VmHWM:")
        operator.process.terminate()
        operator.process.wait()

    idle = results[f"{IDLE:.0f} s without an event"]
    of = f"{chosen.jobs} jobs of {chosen.nodes} pods"
    harness.report(
        "operator_load",
        f"actor-operator with {of}, once",
        ["", "s", "memory, MiB", "processor, s", "requests", "in a second"],
        rows,
        results,
        [f"Peak of its memory: {harness.short(results['peak resident MiB'])} MiB. The driver's own requests are not counted."],
        [
            harness.Figure(f"operator's memory with {of}", "MiB", Summary.of([results["peak resident MiB"]])),
            harness.Figure(f"operator's requests without events, {of}", "1/s", Summary.of([idle["requests"].total() / idle["seconds"]])),
        ],
    )


if __name__ == "__main__":
    main()
