"""Programs outside of the cluster find a real API server by a kubeconfig."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from server import ADMINISTRATOR, STRANGER, Document, Server

WITHIN = 30.0
NAMESPACE = "training"
Run = Callable[..., tuple[subprocess.Popen, Path]]


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def guarded(server_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Takes certificates of users as well; `user.crt` is an administrator's."""
    directory = tmp_path_factory.mktemp("guarded")
    ca, user = directory / "users", directory / "user"
    new = ("req", "-new", "-newkey", "rsa:2048", "-nodes")
    openssl(*new, "-x509", "-subj", "/CN=users", "-keyout", f"{ca}.key", "-out", f"{ca}.crt", "-days", 2)
    openssl(*new, "-subj", "/O=system:masters/CN=person", "-keyout", f"{user}.key", "-out", f"{user}.csr")
    signed = ("-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", 2)
    openssl("x509", "-req", "-in", f"{user}.csr", *signed, "-out", f"{user}.crt")
    started = Server(server_programs, directory)
    started.more = ("--client-ca-file", f"{ca}.crt")
    try:
        started.start()
        assert started.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).status == 201
        yield started
    finally:
        started.close()


class Kubeconfig:
    """Written here: kubectl of this age ends itself when it writes one, but reads it."""

    def __init__(self, server: Server, file: Path) -> None:
        self.server, self.file = server, file
        authority = (server.directory / "certificates/apiserver.crt").read_bytes()
        self.cluster: Document = {"server": server.url, "certificate-authority-data": base64.b64encode(authority).decode()}
        self.user: Document = {"token": ADMINISTRATOR}
        self.context: Document = {"cluster": "here", "user": "person", "namespace": NAMESPACE}

    def write(self, current: str = "near") -> Path:
        entries = {"clusters": ("here", self.cluster), "users": ("person", self.user), "contexts": ("near", self.context)}
        lists = {kind: [{"name": name, kind[:-1]: what}] for kind, (name, what) in entries.items()}
        about = {"apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": current}
        self.file.write_text(yaml.safe_dump(about | lists))
        return self.file

    def kubectl(self, *words: str) -> str:
        line = [self.server.programs / "kubectl", "--kubeconfig", self.file, "--context", "near", *words]
        return subprocess.run(line, check=True, capture_output=True, text=True, timeout=WITHIN).stdout


@pytest.fixture
def kubeconfig(guarded: Server, tmp_path: Path) -> Kubeconfig:
    return Kubeconfig(guarded, tmp_path / "config")


@pytest.fixture
def run(launcher: Path, tmp_path: Path) -> Iterator[Run]:
    started: list[subprocess.Popen] = []

    def begin(program: str, *words: object) -> tuple[subprocess.Popen, Path]:
        said = tmp_path / "said"
        line = [launcher.parent / program, *map(str, words)]
        with said.open("wb") as err:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
            started.append(subprocess.Popen(line, cwd=tmp_path, stdout=err, stderr=err, stdin=subprocess.DEVNULL, env=environment))
        return started[-1], said

    yield begin
    for process in started:
        process.kill()
        process.wait()


def until(condition: Callable[[], object], process: subprocess.Popen, said: Path) -> None:
    ends = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < ends, said.read_text()
        assert process.poll() is None, said.read_text()
        time.sleep(0.05)


def master(config: Path, journal: str) -> list[str]:
    return ["actor-master", "--listen=127.0.0.1:0", "--nnodes=1", f"--journal=configmap:{journal}", f"--kubeconfig={config}"]


@pytest.mark.parametrize("by", ["token", "tokenFile", "certificate", "certificate-data"])
def test_a_master_keeps_its_journal_where_the_kubeconfig_says(by: str, kubeconfig: Kubeconfig, run: Run, guarded: Server) -> None:
    files = {f"client-{what}": guarded.directory / f"user.{end}" for what, end in (("certificate", "crt"), ("key", "key"))}
    if by == "tokenFile":
        (kubeconfig.file.parent / "secret").write_text(f"{ADMINISTRATOR}\n")
        kubeconfig.user = {by: "secret"}
    elif by == "certificate":
        kubeconfig.user = {name: str(file) for name, file in files.items()}
    elif by == "certificate-data":
        kubeconfig.user = {f"{name}-data": base64.b64encode(file.read_bytes()).decode() for name, file in files.items()}
    journal = f"by-{by}".lower()
    process, said = run(*master(kubeconfig.write(current="another"), journal), "--kube-context=near")
    until(lambda: "waiting for 1 node(s)" in said.read_text(), process, said)
    assert guarded.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{journal}").status == 200
    assert f"configmap/{journal}" in kubeconfig.kubectl("get", "configmaps", "-o", "name").split()


def test_an_operator_runs_outside_of_the_cluster(kubeconfig: Kubeconfig, run: Run, guarded: Server) -> None:
    process, said = run("actor-operator", "--master-image=local:1", f"--kubeconfig={kubeconfig.write()}")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/troupe-operator"
    until(lambda: guarded.get(lease).status == 200, process, said)


@pytest.mark.parametrize(
    ("part", "change", "told"),
    [
        ("cluster", {"server": "http://127.0.0.1"}, "its server is not https://HOST[:PORT][/PATH]"),
        ("user", {"token": STRANGER}, 'User "stranger" cannot get resource "configmaps"'),
        ("user", {"token": "", "client-certificate-data": "", "client-key": "nowhere"}, "nowhere' is empty or cannot be read"),
        ("context", {"user": "robot"}, "it has no user 'robot'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(part: str, change: Document, told: str, kubeconfig: Kubeconfig, run: Run) -> None:
    getattr(kubeconfig, part).update(change)
    process, said = run(*master(kubeconfig.write(), "wrong"))
    assert process.wait(WITHIN) == 1
    lines = said.read_text().strip().splitlines()
    assert len(lines) == 1 and told in lines[0], lines
    assert ADMINISTRATOR not in lines[0]


def test_a_server_that_another_authority_has_signed_is_not_spoken_to(kubeconfig: Kubeconfig, run: Run, guarded: Server) -> None:
    other = (guarded.directory / "users.crt").read_bytes()
    kubeconfig.cluster["certificate-authority-data"] = base64.b64encode(other).decode()
    process, said = run(*master(kubeconfig.write(), "untrusted"))
    until(lambda: "certificate verify failed" in said.read_text(), process, said)
    assert ADMINISTRATOR not in said.read_text()
