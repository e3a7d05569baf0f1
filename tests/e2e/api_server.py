"""As much of an API server of Kubernetes as masters need, over TLS: pods by their address, machines and JSON patches.

Requests without the token are refused (401), and what the role lacks (403), as a real one does it; `./x kubernetes`
asks a real one.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-the-pod"


@dataclass
class Cluster:
    """What the server knows. Tests change it as other clients would."""

    pods: dict[str, str] = field(default_factory=dict)  # "status.podIP=…" or "metadata.name=…" -> machine
    machines: dict[str, dict] = field(default_factory=dict)
    may_patch: bool = True
    conflicts: int = 0  # so many changes by others come between reading and writing
    asked: list[str] = field(default_factory=list)

    def taints(self, machine: str) -> list[dict]:
        return self.machines[machine]["spec"].get("taints", [])

    def add_machine(self, name: str) -> None:
        self.machines[name] = {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}}

    def touch(self, name: str) -> None:
        meta = self.machines[name]["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)


def status(code: int, message: str) -> tuple[int, dict]:
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def patched(cluster: Cluster, name: str, patch: list[dict]) -> tuple[int, dict]:
    machine = cluster.machines[name]
    if cluster.conflicts > 0:
        cluster.conflicts -= 1
        machine["spec"].setdefault("taints", []).append({"key": f"other-{cluster.conflicts}", "effect": "NoExecute"})
        cluster.touch(name)
    for change in patch:
        if change["op"] == "test":
            assert change["path"] == "/metadata/resourceVersion"
            if machine["metadata"]["resourceVersion"] != change["value"]:
                return status(422, "the server rejected our request due to an error in our request")
    for change in patch:
        match change["path"]:
            case "/spec/taints":
                machine["spec"]["taints"] = change["value"]
            case "/spec/taints/-":
                machine["spec"]["taints"].append(change["value"])
            case "/spec/unschedulable":
                machine["spec"]["unschedulable"] = change["value"]
    cluster.touch(name)
    return 200, machine


def answer(cluster: Cluster, method: str, target: str, body: str) -> tuple[int, dict]:
    place = urlsplit(target)
    parts = place.path.strip("/").split("/")
    if method == "GET" and parts[:3] == ["api", "v1", "namespaces"] and parts[4:] == ["pods"]:
        [wanted] = parse_qs(place.query)["fieldSelector"]
        pods = [
            {"spec": {"nodeName": machine}, "status": {"phase": "Running"}}
            for which, machine in cluster.pods.items()
            if wanted == which
        ]
        return 200, {"kind": "PodList", "items": pods}
    if parts[:3] == ["api", "v1", "nodes"] and len(parts) == 4:
        name = parts[3]
        if name not in cluster.machines:
            return status(404, f'nodes "{name}" not found')
        if method == "GET":
            return 200, cluster.machines[name]
        if not cluster.may_patch:
            return status(403, f'nodes "{name}" is forbidden: User "x" cannot patch resource "nodes"')
        return patched(cluster, name, json.loads(body))
    return status(404, "the server could not find the requested resource")


class ApiServer:
    """Serves a cluster on loopback; `account` is what a pod finds of its service account."""

    def __init__(self, directory: Path, cluster: Cluster) -> None:
        self.account = directory / "account"
        self.account.mkdir()
        key = directory / "key.pem"
        authority = self.account / "ca.crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=kube-apiserver"]
            + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", authority],
            check=True,
            capture_output=True,
        )
        (self.account / "token").write_text(TOKEN)
        (self.account / "namespace").write_text("jobs")
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                with lock:
                    cluster.asked.append(f"{self.command} {self.path}")
                    code, what = status(401, "Unauthorized")
                    if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                        code, what = answer(cluster, self.command, self.path, body)
                content = json.dumps(what).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PATCH = handle_one

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that turned away is no news."""

        self.server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority, key)
        # A handshake is each connection's own, so that one that waits holds up no other.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def environment(self) -> dict[str, str]:
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.server.server_address[1]),
        }

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
