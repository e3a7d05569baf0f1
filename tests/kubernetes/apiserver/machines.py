"""The cluster's machines: runs the API server's pods as real processes, and leads services' addresses to them.

What a kubelet, a container engine, kube-proxy and the cluster's DNS do. An image is the programs of a build and this
machine's Python, whatever its name is; one called missing:… cannot be pulled.
"""

from __future__ import annotations

import base64
import copy
import os
import shlex
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from controllers import Document, Pod
from kubelet import Kubelet, command, expanded, write_volume
from server import Server

API_SERVER = "10.96.0.1"  # the first of the services' addresses
NOWHERE = ""


class NotStarted(Exception):
    """Why, as a container's status tells it: reason and message."""


@dataclass
class ApiPod(Pod):
    document: Document = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.document["metadata"]["namespace"]


def key_of(document: Document) -> str:
    """Of a pod or a service, for people and for folders."""
    return f"{document['metadata']['namespace']}.{document['metadata']['name']}"


def pod_of(document: Document) -> ApiPod:
    """With what a kubelet assumes where nothing is said."""
    spec, metadata = copy.deepcopy(document["spec"]), document["metadata"]
    security = {"runAsUser": 0, "runAsGroup": 0} | spec.get("securityContext", {})
    spec["securityContext"] = {"fsGroup": security["runAsGroup"]} | security
    spec.setdefault("volumes", [])
    for container in spec["containers"]:
        for mount in container.setdefault("volumeMounts", []):
            # In a pod's root /var/run is a link out of it.
            mount["mountPath"] = mount["mountPath"].replace("/var/run/", "/run/")
    hostname = spec.get("hostname") or metadata["name"][:63].rstrip("-")
    return ApiPod(key_of(document), spec, hostname, "", metadata.get("labels", {}), {}, document)


@dataclass
class Service:
    names: list[str]
    namespace: str
    address: str
    at: str = NOWHERE  # the network of its pod


class Machines(Kubelet):
    def __init__(self, directory: Path, programs: Path) -> None:
        super().__init__(directory, programs)
        self.server: Server  # which needs the network that is made above
        self.known: dict[str, Service] = {}  # by uid
        self.killed: set[int] = set()  # the pids of what runs a pod, which does not tell by which signal that has ended
        command("ip", "-n", self.bridge, "link", "set", "lo", "up")
        command("ip", "-n", self.bridge, "addr", "add", f"{API_SERVER}/32", "dev", "bridge")

    # ------------------------------------------------------------------------------------------ names and services

    def list_names(self) -> None:
        for name, running in self.running.items():
            if name in self.addresses:
                self.write_hosts(running.pod, running.said.parent)

    def hosts_of(self, pod: Pod, place: Path) -> Path:
        return self.write_hosts(pod, place)

    def write_hosts(self, pod: Pod, place: Path) -> Path:
        """A pod finds itself and the services of its namespace by their names, and others by whole ones."""
        assert isinstance(pod, ApiPod)
        lines = ["127.0.0.1 localhost", f"{self.addresses[pod.name]} {pod.hostname}"]
        for service in self.known.values():
            own = service.namespace == pod.namespace
            lines.append(" ".join([service.address, *service.names[0 if own else 1 :]]))
        hosts = place / "hosts"
        hosts.write_text("\n".join(lines) + "\n")  # in place: the pod sees this file by a mount
        return hosts

    def lead(self, pod: Pod, network: str, change: str) -> None:
        """By `serve`."""

    def serve(self, services: list[Document], endpoints: list[Document]) -> None:
        """The address of each leads to the newest of its endpoints, or to where nothing listens."""
        led = {key_of(each): self.newest_of(each) for each in endpoints}
        listed = {s["metadata"]["uid"]: s for s in services if s["spec"].get("selector")}
        before = set(self.known)
        for uid in before - listed.keys():
            gone = self.known.pop(uid)
            command("ip", "-n", gone.at or self.bridge, "addr", "del", f"{gone.address}/32", "dev", self.device(gone.at))
        for uid, document in listed.items():
            if uid not in self.known:
                self.known[uid] = self.new_service(document)
            self.move(self.known[uid], led.get(key_of(document), NOWHERE))
        if before != set(self.known):
            self.list_names()

    def newest_of(self, endpoints: Document) -> str:
        """The network of the newest of the pods that run here."""
        namespace, found = endpoints["metadata"]["namespace"], {}
        for subset in endpoints.get("subsets", []):
            for address in subset.get("addresses", []):
                at = address["targetRef"]
                running = self.running.get(f"{namespace}.{at['name']}")
                if running and running.pod.document["metadata"]["uid"] == at["uid"]:
                    found[running.pod.document["metadata"]["creationTimestamp"]] = running.network
        return found[max(found)] if found else NOWHERE

    def new_service(self, document: Document) -> Service:
        name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
        whole = f"{name}.{namespace}"
        address = document["spec"]["clusterIP"]
        command("ip", "-n", self.bridge, "addr", "add", f"{address}/32", "dev", "bridge")
        names = [name, whole, f"{whole}.svc", f"{whole}.svc.cluster.local"]
        return Service(names, namespace, address)

    def device(self, network: str) -> str:
        return "pod" if network else "bridge"

    def move(self, service: Service, to: str) -> None:
        if to == service.at:
            return
        # First there, then no longer here: one of them answers at any time.
        command("ip", "-n", to or self.bridge, "addr", "add", f"{service.address}/32", "dev", self.device(to))
        command("ip", "-n", service.at or self.bridge, "addr", "del", f"{service.address}/32", "dev", self.device(service.at))
        service.at = to
        for name in self.addresses:
            flush = ("ip", "-n", self.running[name].network, "neigh", "flush", "dev", "pod")
            subprocess.run(flush, capture_output=True)

    # ------------------------------------------------------------------------------------------- what a pod is given

    def words(self, pod: Pod, environment: dict[str, str]) -> list[str]:
        container = pod.container
        return [expanded(word, environment) for word in [*container["command"], *container.get("args", [])]]

    def own_variables(self, pod: Pod, machine: str, address: str) -> dict[str, str]:
        assert isinstance(pod, ApiPod)
        metadata = pod.document["metadata"]
        fields = {"spec.nodeName": machine, "status.hostIP": self.address_of_machine(machine), "status.podIP": address}
        fields |= {f"metadata.{name}": metadata[name] for name in ("name", "namespace", "uid")}
        fields["spec.serviceAccountName"] = pod.spec.get("serviceAccountName", "default")
        for kind in ("labels", "annotations"):
            fields |= {f"metadata.{kind}['{key}']": value for key, value in metadata.get(kind, {}).items()}
        found = {"KUBERNETES_SERVICE_HOST": API_SERVER, "KUBERNETES_SERVICE_PORT": "443"}
        for variable in pod.container.get("env", []):
            source = variable.get("valueFrom")
            value = self.value_from(pod.namespace, source, fields) if source else variable.get("value", "")
            if value is not None:
                found[variable["name"]] = expanded(value, found)
        return found

    def value_from(self, namespace: str, source: Document, fields: dict[str, str]) -> str | None:
        if field_of := source.get("fieldRef"):
            return fields[field_of["fieldPath"]]
        secret, configured = source.get("secretKeyRef"), source.get("configMapKeyRef")
        asked = secret or configured
        assert asked, f"no pod here has values of {source}"
        data = self.data_of(namespace, "secrets" if secret else "configmaps", asked["name"], asked.get("optional", False))
        if asked["key"] not in data and not asked.get("optional"):
            raise NotStarted("CreateContainerConfigError", f"couldn't find key {asked['key']} in {asked['name']}")
        return data.get(asked["key"])

    def address_of_machine(self, name: str) -> str:
        addresses = self.server.get(f"/api/v1/nodes/{name}").body["status"]["addresses"]
        return next(a["address"] for a in addresses if a["type"] == "InternalIP")

    def data_of(self, namespace: str, kind: str, name: str, is_optional: bool) -> dict[str, str]:
        answer = self.server.get(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        if answer.status != 200:
            if is_optional:
                return {}
            raise NotStarted("CreateContainerConfigError", f'{kind[:-1]} "{name}" not found')
        data = answer.body.get("data") or {}
        return {key: base64.b64decode(text).decode() for key, text in data.items()} if kind == "secrets" else data

    def volume(self, volume: Document, place: Path, group: int) -> str:
        namespace = place.name.partition(".")[0]
        at, name = place / volume["name"], volume["name"]
        if (empty := volume.get("emptyDir")) is not None:
            size = f",size={limit.removesuffix('i')}" if (limit := empty.get("sizeLimit")) else ""
            return f"mode=1777{size} AT tmpfs"
        if host := volume.get("hostPath"):
            # The same on all machines, as a volume that training reads has to be.
            return f"{self.claim(host['path'].strip('/'), group)} AT bind"
        if secret := volume.get("secret"):
            data = self.data_of(namespace, "secrets", secret["secretName"], secret.get("optional", False))
            write_volume(at, data, secret["defaultMode"], group)
            return f"{at} AT bind"
        if configured := volume.get("configMap"):
            data = self.data_of(namespace, "configmaps", configured["name"], configured.get("optional", False))
            write_volume(at, data, configured["defaultMode"], group)
            return f"{at} AT bind"
        raise AssertionError(f"no pod here has the volume {name}: {volume}")

    # --------------------------------------------------------------------------------------------------- processes

    def unplug(self, name: str) -> None:
        """What it has sent last is not answered, and nothing tells others that it is gone."""
        command("ip", "-n", self.running[name].network, "link", "set", "pod", "down")

    def ask_to_end(self, name: str) -> None:
        self.signal(name, signal.SIGTERM)

    def kill(self, name: str) -> None:
        """All of its processes; what is told of it is the caller's."""
        self.killed.add(self.running[name].process.pid)
        self.signal(name, signal.SIGKILL)

    def signal(self, name: str, number: int) -> None:
        if first := self.running[name].first:
            os.kill(first, number)

    def exit_code(self, name: str) -> int | None:
        """As a container's status has it. None: it runs."""
        process = self.running[name].process
        code = process.poll()
        if code is not None and process.pid in self.killed:
            return 128 + signal.SIGKILL
        return 128 - code if code is not None and code < 0 else code

    def processes(self, name: str) -> dict[int, str]:
        """Command lines of the pod's processes by their pids here."""
        first, found = self.running[name].first, {}
        if first is None:
            return {}
        of_pod = os.readlink(f"/proc/{first}/ns/pid")
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == of_pod:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found[int(entry.name)] = shlex.join(words[:-1])
            except OSError:
                continue  # it has ended meanwhile
        return found
