"""etcd and a kube-apiserver on loopback, with RBAC: tests/kubernetes/apiserver/build has made them.

No scheduler or kubelet runs, and controllers only after `control`: without them what is created
stays as it was admitted. In a network namespace the server has the address of the service
"kubernetes", as pods expect it.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import ctypes
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validator import custom_resources, training_runtime

Document = dict[str, Any]
WITHIN = 120.0
SERVICES, ADVERTISED = "10.96.0.0/16", "10.88.255.254"
# The controllers that jobs meet. The health of machines is left out: those here send no signs of life.
CONTROLLERS = (
    *("namespace", "serviceaccount", "serviceaccount-token", "root-ca-cert-publisher"),
    *("clusterrole-aggregation", "garbagecollector", "podgc", "endpoint", "endpointslice"),
    *("disruption", "deployment", "replicaset"),
)
ADMINISTRATOR, STRANGER = "a-token-of-the-administrators", "a-token-without-a-role"


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def definitions() -> list[Document]:
    """Of the custom resources, as this server takes them."""
    found = [for_1_20(definition) for definition in custom_resources()]
    # The Trainer's other kind, whose definition is none of schemas/.
    runtime = copy.deepcopy(next(d for d in found if d["spec"]["names"]["kind"] == "TrainJob"))
    names = {"kind": "TrainingRuntime", "listKind": "TrainingRuntimeList"}
    names |= {"plural": "trainingruntimes", "singular": "trainingruntime"}
    runtime["metadata"]["name"] = f"{names['plural']}.{runtime['spec']['group']}"
    runtime["spec"]["names"] = names
    [version] = runtime["spec"]["versions"]
    schema = for_1_20(training_runtime())
    schema["properties"]["spec"]["properties"]["template"]["properties"]["metadata"] = {"type": "object"}
    version["schema"] = {"openAPIV3Schema": schema}
    version.pop("additionalPrinterColumns", None)
    return [*found, runtime]


def for_1_20(schema: Any) -> Any:
    """Without what Kubernetes 1.20 refuses: rules in CEL, defaults, and lists whose items are known by keys with these."""
    if isinstance(schema, list):
        return [for_1_20(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    refused = {"x-kubernetes-validations", "x-kubernetes-list-map-keys"}
    if schema.get("x-kubernetes-list-type") == "map":
        refused.add("x-kubernetes-list-type")
    if not isinstance(schema.get("default", {}), dict | list):
        refused.add("default")
    return {key: for_1_20(value) for key, value in schema.items() if key not in refused}


@contextlib.contextmanager
def inside(network: str) -> Iterator[None]:
    """Sockets that this thread opens meanwhile are of the network namespace of this name, if there is a name."""
    if not network:
        yield
        return
    with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{network}") as other:
        enter_network(other.fileno())
        try:
            yield
        finally:
            enter_network(own.fileno())


def enter_network(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0x40000000):  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "setns")


@dataclass
class Answer:
    status: int
    body: Document


class Server:
    def __init__(self, programs: Path, directory: Path, network: str = "", address: str = "127.0.0.1") -> None:
        self.programs, self.directory = programs, directory
        self.network, self.address = network, address
        self.more: tuple[object, ...] = ()  # options of the API server
        self.is_controlled = False  # whether `control` is to follow
        self.processes: list[subprocess.Popen] = []
        # It makes its certificate itself.
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.connections = threading.local()

    def start(self) -> None:
        """`close` ends what of it has started."""
        directory = self.directory
        peer, client, port = free_ports(3)
        self.port = 443 if self.network else port
        self.url = f"https://{self.address}:{self.port}"
        etcd = f"http://127.0.0.1:{client}"
        self.run(
            *("etcd", "--data-dir", directory / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd),
            *("--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync"),
        )  # fmt: skip
        users = directory / "users.csv"
        users.write_text(f'{ADMINISTRATOR},administrator,1,"system:masters"\n{STRANGER},stranger,2\n')
        users.chmod(0o600)
        key = self.key_of_accounts
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self.line = (
            *("kube-apiserver", "--etcd-servers", etcd, "--bind-address", self.address, "--secure-port", self.port),
            *("--cert-dir", directory / "certificates", "--token-auth-file", users, "--authorization-mode", "RBAC"),
            *("--service-account-issuer", "https://localhost", "--service-account-key-file", key),
            *("--service-account-signing-key-file", key, "--endpoint-reconciler-type", "none"),
            "--anonymous-auth=false",
            # Without controllers nothing makes the accounts that pods would need.
            *(() if self.is_controlled else ("--disable-admission-plugins", "ServiceAccount")),
            # As some distributions have it; it needs more rights, and so shows which ones lack.
            *("--enable-admission-plugins", "OwnerReferencesPermissionEnforcement"),
            # Their first address is that of the service "kubernetes", for which the certificate is good.
            *("--service-cluster-ip-range", SERVICES, "--advertise-address", ADVERTISED),
            *self.more,
        )  # fmt: skip
        self.resume()

    def resume(self) -> None:
        """Starts the API server, also when it was there before."""
        self.serving = self.run(*self.line)
        self.until(lambda: self.get("/readyz").status == 200, "the server is ready")

    def pause(self) -> None:
        """Ends the API server at once; what it has stored stays. Its controllers wait for it."""
        self.processes.remove(self.serving)
        self.serving.kill()
        self.serving.wait()

    def control(self) -> None:
        """Starts Kubernetes' own controllers, and waits for the first thing that they make."""
        assert self.is_controlled
        config = self.directory / "controllers.json"
        config.write_text(json.dumps(self.kubeconfig()))
        config.chmod(0o600)
        self.run(
            *("kube-controller-manager", "--kubeconfig", config, "--leader-elect=false"),
            *("--port=0", "--secure-port=0", "--controllers", ",".join(CONTROLLERS)),
            *("--root-ca-file", self.directory / "certificates/apiserver.crt"),
            *("--service-account-private-key-file", self.key_of_accounts),
        )  # fmt: skip
        self.until(lambda: self.has_account("default"), "the controllers have made an account")

    def has_account(self, namespace: str, name: str = "default") -> bool:
        """With a token: no pod is admitted before."""
        account = self.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}").body
        return bool(account.get("secrets"))

    def kubeconfig(self) -> Document:
        authority = base64.b64encode(self.authority).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "administrator", "user": {"token": ADMINISTRATOR}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "administrator"}}],
        }  # fmt: skip

    def run(self, program: str, *arguments: object) -> subprocess.Popen:
        with (self.directory / f"{program}.log").open("ab") as log:
            line = [*self.entering, str(self.programs / program), *map(str, arguments)]
            self.processes.append(
                subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory)
            )
        return self.processes[-1]

    @property
    def key_of_accounts(self) -> Path:
        return self.directory / "service-accounts.key"

    @property
    def entering(self) -> list[str]:
        return ["ip", "netns", "exec", self.network] if self.network else []

    @property
    def authority(self) -> bytes:
        return (self.directory / "certificates" / "apiserver.crt").read_bytes()

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def until(self, condition: Any, what: str) -> None:
        ends = time.monotonic() + WITHIN
        while not condition():
            ended = [process.args[len(self.entering)] for process in self.processes if process.poll() is not None]
            said = "\n".join((self.directory / f"{Path(name).name}.log").read_text()[-3000:] for name in ended)
            assert not ended, f"ended: {ended}\n{said}"
            assert time.monotonic() < ends, f"not within {WITHIN} s: {what}"
            time.sleep(0.1)

    def get(self, path: str, token: str = ADMINISTRATOR) -> Answer:
        return self.ask("GET", path, None, token)

    def ask(
        self, method: str, path: str, body: Document | None, token: str = ADMINISTRATOR, kind: str = "application/json"
    ) -> Answer:
        """Status 0: the server was not there."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        data = json.dumps(body).encode() if body is not None else None
        status, text = self.exchange(method, path, data, headers)
        if not status:  # the connection may have been one that the server has closed meanwhile
            status, text = self.exchange(method, path, data, headers)
        try:
            return Answer(status, json.loads(text))
        except ValueError:
            return Answer(status, {"message": text.decode(errors="replace")})

    def exchange(self, *request: Any) -> tuple[int, bytes]:
        """On this thread's connection, which is kept."""
        kept = self.connections.__dict__.pop("kept", None)
        try:
            if kept is None:
                kept = http.client.HTTPSConnection(self.address, self.port, context=self.context, timeout=30)
                with inside(self.network):
                    kept.connect()
            kept.request(*request)
            answer = kept.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            kept.close()
            return 0, str(error).encode()
        self.connections.kept = kept
        return answer.status, text

    def patch(self, path: str, body: Document) -> Answer:
        return self.ask("PATCH", path, body, kind="application/merge-patch+json")

    def define(self, document: Document) -> None:
        """A custom resource, and waits until it can be used."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        answer = self.ask("POST", path, document)
        assert answer.status == 201, answer.body["message"]
        name = document["metadata"]["name"]

        def established() -> bool:
            conditions = self.get(f"{path}/{name}").body.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        self.until(established, f"{name} is established")

    def kubectl(
        self, *arguments: object, input: str = "", token: str = ADMINISTRATOR
    ) -> subprocess.CompletedProcess[str]:
        """As a user would, with the validation that it does itself by what the server says of its types."""
        line = [*self.entering, str(self.programs / "kubectl"), "--server", self.url, "--token", token, "--insecure-skip-tls-verify"]
        return subprocess.run(
            [*line, *map(str, arguments)], input=input, capture_output=True, text=True, timeout=WITHIN,
            env=os.environ | {"HOME": str(self.directory), "KUBECONFIG": "/dev/null"},
        )  # fmt: skip
