"""etcd and a kube-apiserver on loopback, with RBAC: tests/kubernetes/apiserver/build has made them.

No controller, scheduler or kubelet runs: what is created stays as it was admitted.
"""

from __future__ import annotations

import copy
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validator import custom_resources, training_runtime

Document = dict[str, Any]
WITHIN = 120.0
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


@dataclass
class Answer:
    status: int
    body: Document


class Server:
    def __init__(self, programs: Path, directory: Path) -> None:
        self.programs, self.directory = programs, directory
        self.processes: list[subprocess.Popen] = []
        # It makes its certificate itself.
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def start(self) -> None:
        """`close` ends what of it has started."""
        directory = self.directory
        peer, client, port = free_ports(3)
        self.url = f"https://127.0.0.1:{port}"
        etcd = f"http://127.0.0.1:{client}"
        self.run(
            *("etcd", "--data-dir", directory / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd),
            *("--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync"),
        )  # fmt: skip
        users = directory / "users.csv"
        users.write_text(f'{ADMINISTRATOR},administrator,1,"system:masters"\n{STRANGER},stranger,2\n')
        users.chmod(0o600)
        key = directory / "service-accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self.run(
            *("kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", port),
            *("--cert-dir", directory / "certificates", "--token-auth-file", users, "--authorization-mode", "RBAC"),
            *("--service-account-issuer", "https://localhost", "--service-account-key-file", key),
            *("--service-account-signing-key-file", key, "--endpoint-reconciler-type", "none"),
            # No controller makes the accounts that pods would need.
            *("--disable-admission-plugins", "ServiceAccount", "--anonymous-auth=false"),
        )  # fmt: skip
        self.until(lambda: self.get("/readyz").status == 200, "the server is ready")

    def run(self, program: str, *arguments: object) -> None:
        with (self.directory / f"{program}.log").open("wb") as log:
            line = [str(self.programs / program), *map(str, arguments)]
            self.processes.append(
                subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory)
            )

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def until(self, condition: Any, what: str) -> None:
        ends = time.monotonic() + WITHIN
        while not condition():
            ended = [process.args[0] for process in self.processes if process.poll() is not None]
            said = "\n".join((self.directory / f"{Path(name).name}.log").read_text()[-3000:] for name in ended)
            assert not ended, f"ended: {ended}\n{said}"
            assert time.monotonic() < ends, f"not within {WITHIN} s: {what}"
            time.sleep(0.1)

    def get(self, path: str, token: str = ADMINISTRATOR) -> Answer:
        return self.ask("GET", path, None, token)

    def ask(self, method: str, path: str, body: Document | None, token: str = ADMINISTRATOR) -> Answer:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            text, status = error.read(), error.code
        except OSError as error:
            return Answer(0, {"message": str(error)})
        try:
            return Answer(status, json.loads(text))
        except ValueError:
            return Answer(status, {"message": text.decode(errors="replace")})

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
        line = [str(self.programs / "kubectl"), "--server", self.url, "--token", token, "--insecure-skip-tls-verify"]
        return subprocess.run(
            [*line, *map(str, arguments)], input=input, capture_output=True, text=True, timeout=WITHIN,
            env=os.environ | {"HOME": str(self.directory), "KUBECONFIG": "/dev/null"},
        )  # fmt: skip
