"""A whole cluster: the API server with Kubernetes' own controllers, and machines that run its pods.

A stand-in for the scheduler, the kubelets' talk with the server and the controller of machines, as
far as jobs can see them. It looks ten times a second; a lost machine says nothing any more.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kubelet import until
from machines import API_SERVER, Machines, NotStarted, key_of, pod_of
from scheduling import place_for
from server import Document, Server

LOOKS_EVERY, STARTS_AGAIN_AFTER = 0.1, 1.0
ENDED = ("Succeeded", "Failed")
OWNERS = "/apis/elastic.iml.github.io/v1alpha1/elasticjobs"


def utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def path_of(pod: Document) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


@dataclass
class Life:
    """Of a pod that a machine has begun with."""

    pod: Document
    started: str = ""
    restarts: int = 0
    kill_at: float | None = None  # it was asked to end
    is_told: bool = False  # that it has ended
    next_start: float = 0.0

    @property
    def key(self) -> str:
        return key_of(self.pod)


class Cluster:
    def __init__(self, directory: Path, server_programs: Path, programs: Path) -> None:
        self.machines = Machines(directory / "pods", programs)
        self.server = self.machines.server = Server(server_programs, directory, self.machines.bridge, API_SERVER)
        self.server.is_controlled = True
        self.lives: dict[str, Life] = {}  # by uid
        self.lost: set[str] = set()
        self.lock = threading.RLock()
        self.is_over = threading.Event()
        self.trouble = ""
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self) -> None:
        self.server.start()
        self.server.control()
        self.thread.start()

    def close(self) -> None:
        self.is_over.set()
        if self.thread.is_alive():
            self.thread.join()
        self.machines.close()
        self.server.close()

    def work(self) -> None:
        while not self.is_over.wait(LOOKS_EVERY):
            try:
                self.look()
            except Exception:
                self.trouble = traceback.format_exc()
                return

    # --------------------------------------------------------------------------------------------------------- pods

    def look(self) -> None:
        """What a machine does, it does without the server as well; it is told when that is back."""
        kinds = ("pods", "services", "endpoints")
        lists = (self.server.get(f"/api/v1/{kind}?resourceVersion=0") for kind in kinds)
        pods, services, endpoints = lists
        if {pods.status, services.status, endpoints.status} != {200}:
            return
        with self.lock:
            listed = {pod["metadata"]["uid"] for pod in pods.body["items"]}
            for uid in self.lives.keys() - listed:
                self.remove(self.lives.pop(uid))
            for pod in pods.body["items"]:
                self.look_at(pod, pods.body["items"])
            self.machines.serve(services.body["items"], endpoints.body["items"])

    def look_at(self, pod: Document, all_pods: list[Document]) -> None:
        machine = pod["spec"].get("nodeName")
        life = self.lives.get(pod["metadata"]["uid"])
        if machine in self.lost:
            return
        if "deletionTimestamp" in pod["metadata"]:
            self.end(pod, life)
        elif pod["status"]["phase"] in ENDED:
            return
        elif not machine:
            self.schedule(pod, all_pods)
        elif not life or (not life.started and life.next_start <= time.monotonic()):
            self.begin(pod, life or Life(pod))
        elif life.started and self.machines.exit_code(life.key) is not None:
            self.ended(pod, life)

    def schedule(self, pod: Document, all_pods: list[Document]) -> None:
        machine, why = place_for(pod, self.server.get("/api/v1/nodes").body["items"], all_pods)
        if machine:
            body = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": machine}}
            self.server.ask("POST", f"{path_of(pod)}/binding", body)
            pod["spec"]["nodeName"] = machine  # for the next ones of this look
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        if [c.get("message") for c in pod["status"].get("conditions", [])] != [why]:
            self.tell(pod, {"conditions": [condition]})

    def begin(self, pod: Document, life: Life) -> None:
        self.lives[pod["metadata"]["uid"]] = life
        life.next_start = time.monotonic() + STARTS_AGAIN_AFTER
        image = pod["spec"]["containers"][0]["image"]
        try:
            if image.startswith("missing:"):
                is_first = not pod["status"].get("containerStatuses")
                reason = "ErrImagePull" if is_first else "ImagePullBackOff"
                raise NotStarted(reason, f'rpc error: "{image}": not found' if is_first else f'Back-off pulling image "{image}"')
            self.machines.start(pod_of(pod), pod["spec"]["nodeName"])
        except NotStarted as why:
            self.machines.addresses.pop(life.key, None)
            reason, message = why.args
            self.tell(pod, self.status(pod, life, {"waiting": {"reason": reason, "message": message}}, "Pending"))
            return
        life.started = life.started or utc()
        self.tell(pod, self.status(pod, life, {"running": {"startedAt": utc()}}, "Running"))

    def ended(self, pod: Document, life: Life) -> None:
        code = self.machines.exit_code(life.key)
        policy = pod["spec"]["restartPolicy"]
        is_deleted = "deletionTimestamp" in pod["metadata"]
        if not is_deleted and (policy == "Always" or (policy == "OnFailure" and code)):
            if life.next_start <= time.monotonic():
                life.restarts += 1
                self.machines.forget(life.key)
                self.begin(pod, life)
            return
        if life.is_told:
            return
        state = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": life.started, "finishedAt": utc()}
        if code and pod["spec"]["containers"][0].get("terminationMessagePolicy") == "FallbackToLogsOnError":
            log = self.said(pod["metadata"]["namespace"], pod["metadata"]["name"]).splitlines(keepends=True)
            state["message"] = "".join(log[-80:])[-2048:]
        told = self.status(pod, life, {"terminated": state}, "Failed" if code else "Succeeded")
        life.is_told = self.tell(pod, told)
        if life.key in self.machines.addresses:
            self.machines.forget(life.key)

    def end(self, pod: Document, life: Life | None) -> None:
        """Asks its process to end, and kills it after the grace period. Then nothing keeps the pod any more."""
        if life and life.started and self.machines.exit_code(life.key) is None:
            if life.kill_at is None:
                life.kill_at = time.monotonic() + pod["metadata"].get("deletionGracePeriodSeconds", 0)
                self.machines.ask_to_end(life.key)
            elif life.kill_at <= time.monotonic():
                self.machines.kill(life.key)
            return
        if life and life.started:
            self.ended(pod, life)
        precondition = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self.server.ask("DELETE", path_of(pod), precondition)

    def remove(self, life: Life) -> None:
        """Of a pod that is not there any more: it was removed by force."""
        if life.started and life.pod["spec"]["nodeName"] not in self.lost:
            self.machines.kill(life.key)
            if life.key in self.machines.addresses:
                self.machines.forget(life.key)

    def status(self, pod: Document, life: Life, state: Document, phase: str) -> Document:
        spec = pod["spec"]
        is_ready = "running" in state
        address = self.machines.addresses.get(life.key)
        condition = {"status": str(is_ready), "lastTransitionTime": utc()}
        container = {
            "name": spec["containers"][0]["name"], "image": spec["containers"][0]["image"], "imageID": "",
            "ready": is_ready, "started": is_ready, "restartCount": life.restarts, "state": state,
        }  # fmt: skip
        return {
            "phase": phase,
            "startTime": life.started or utc(),
            "hostIP": self.machines.address_of_machine(spec["nodeName"]),
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": utc()},
                *({"type": kind} | condition for kind in ("Initialized", "Ready", "ContainersReady")),
            ],
            "containerStatuses": [container],
        } | ({"podIP": address, "podIPs": [{"ip": address}]} if address else {})

    def tell(self, pod: Document, status: Document) -> bool:
        return self.server.patch(f"{path_of(pod)}/status", {"status": status}).status == 200

    # ----------------------------------------------------------------------------------------------------- machines

    def add_machine(self, name: str, number: int, **allocatable: object) -> None:
        """Ready, and with nothing that keeps pods away."""
        self.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        self.server.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"} | {k: str(v) for k, v in allocatable.items()}
        address = {"type": "InternalIP", "address": f"10.89.0.{number}"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": utc()}
        status = {"capacity": room, "allocatable": room, "addresses": [address], "conditions": [ready]}
        told = self.server.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        assert told.status == 200, told.body

    def lose(self, machine: str) -> None:
        """Its power fails: its pods are gone, and the server is told nothing of it."""
        with self.lock:
            self.lost.add(machine)
            for life in self.lives.values():
                if life.started and life.pod["spec"].get("nodeName") == machine and life.key in self.machines.addresses:
                    # The cable first: no connection is closed.
                    self.machines.unplug(life.key)
                    self.machines.kill(life.key)

    def declare_lost(self, machine: str) -> None:
        """What follows when a machine has said nothing for long: its pods are to be deleted, and no kubelet does it."""
        taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        assert self.server.patch(f"/api/v1/nodes/{machine}", {"spec": {"taints": taints}}).status == 200
        for pod in self.server.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{machine}").body["items"]:
            self.server.ask("DELETE", path_of(pod), None)

    def repair(self, machine: str) -> None:
        """It is there again, and empty."""
        for pod in self.server.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{machine}").body["items"]:
            self.server.ask("DELETE", path_of(pod), {"gracePeriodSeconds": 0})
        self.server.patch(f"/api/v1/nodes/{machine}", {"spec": {"taints": None, "unschedulable": None}})
        with self.lock:
            self.lost.discard(machine)

    # ---------------------------------------------------------------------------------------------------- for tests

    def namespace(self, name: str) -> str:
        made = self.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert made.status == 201, made.body
        has_account = lambda: self.server.has_account(name)
        self.until(has_account, lambda: f"the namespace {name} has no account")
        return name

    def apply(self, *documents: Document) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        done = self.server.kubectl("apply", "-f", "-", input=json.dumps(listed))
        assert done.returncode == 0, done.stderr

    def pods(self, namespace: str, selector: str = "") -> list[Document]:
        listed = self.server.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector.replace('=', '%3D')}")
        return listed.body["items"] if listed.status == 200 else []

    def said(self, namespace: str, name: str) -> str:
        """Its log, of all its lives."""
        files = sorted(self.machines.directory.glob(f"{namespace}.{name}-*/said"), key=lambda file: file.stat().st_mtime)
        return "".join(file.read_text(errors="replace") for file in files)

    def until(self, condition: Callable[[], object], what: Callable[[], str], within: float = 60.0) -> None:
        def holds() -> object:
            assert not self.trouble, self.trouble
            return condition()

        until(holds, what, within)


@contextlib.contextmanager
def cluster(directory: Path, server_programs: Path, programs: Path) -> Iterator[Cluster]:
    (directory / "pods").mkdir()
    made = Cluster(directory, server_programs, programs)
    try:
        made.start()
        yield made
    finally:
        made.close()
