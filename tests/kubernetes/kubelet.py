"""Runs the pods of a manifest as real processes, each with a network, a host name, files and process ids of its own.

A stand-in for scheduler, kubelet, container engine, the cluster's DNS and its services: a pod has an address, which
changes when the pod is started again; other pods find it by its names once it is there; a service's address leads to
its pod, and refuses connections while there is none; volumes are what the manifest says; a command runs as process 1,
as the user of its security context, and without rights. Needs root.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from controllers import Document, Pod

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
PYTHON = ROOT / ".venv/bin/python"
WITHIN = 60.0
# Where a pod finds the programs: beside what is the image's own.
PROGRAMS = "/opt/programs"
# A machine that stalls for some seconds costs no node its place; a pod that is killed is noticed by the end of its
# connections.
CALM = "keep_alive_interval=60,keep_alive_max_attempt=1"
PATH = f"{PROGRAMS}/bin:{PYTHON.parent}:/usr/local/bin:/usr/bin:/bin"


def command(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.strip()}"
    return done.stdout


def until(condition: Callable[[], object], what: Callable[[], str], within: float = WITHIN) -> None:
    ends = time.monotonic() + within
    while not condition():
        assert time.monotonic() < ends, f"not within {within} s:\n{what()}"
        time.sleep(0.05)


def write_volume(place: Path, files: dict[str, str], mode: int, group: int) -> None:
    """As a kubelet does: the files are links, and what they lead to is replaced as a whole."""
    data = place / "..2026_11_26"
    data.mkdir(parents=True)
    for name, text in files.items():
        (data / name).write_text(text)
        os.chown(data / name, 0, group)
        (data / name).chmod(mode)
        (place / name).symlink_to(Path("..data") / name)
    (place / "..data").symlink_to(data.name)
    for folder in (place, data):
        folder.chmod(0o755)


@dataclass
class Running:
    pod: Pod
    process: subprocess.Popen
    said: Path
    network: str

    @property
    def first(self) -> int | None:
        """The pid here of what is process 1 there; None when it is gone."""
        with contextlib.suppress(OSError, ValueError):
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            return int(children.split()[0]) if children.split() else None
        return None


@dataclass
class Kubelet:
    directory: Path
    programs: Path  # with bin and libexec below
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    config_maps: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[Document] = field(default_factory=list)
    running: dict[str, Running] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lives: dict[str, int] = {}
        self.addresses: dict[str, str] = {}
        self.free = itertools.count(2)
        self.hosts = self.directory / "hosts"
        self.bridge = f"kube-{os.getpid()}"
        self.networks = [self.bridge]
        # Headless ones are names, and nothing else.
        with_address = [service for service in self.services if service["spec"].get("clusterIP") != "None"]
        self.service_addresses = {
            service["metadata"]["name"]: (f"10.96.0.{number}", service["spec"]["selector"])
            for number, service in enumerate(with_address, start=1)
        }
        self.list_names()
        command("ip", "netns", "add", self.bridge)
        command("ip", "-n", self.bridge, "link", "add", "bridge", "type", "bridge")
        command("ip", "-n", self.bridge, "link", "set", "bridge", "up")
        command("ip", "-n", self.bridge, "addr", "add", "10.88.255.254/16", "dev", "bridge")
        for address, _ in self.service_addresses.values():
            command("ip", "-n", self.bridge, "addr", "add", f"{address}/32", "dev", "bridge")

    def close(self) -> None:
        for running in self.running.values():
            if first := running.first:
                os.kill(first, signal.SIGKILL)
            running.process.kill()
            running.process.wait()
        for network in self.networks:
            subprocess.run(["ip", "netns", "del", network], capture_output=True)

    # ------------------------------------------------------------------------------------------ names and services

    def list_names(self) -> None:
        """In place: the pods see this file by a mount. Names without a pod are not there."""
        names = {address: self.running[name].pod.names for name, address in self.addresses.items()}
        names |= {address: [name] for name, (address, _) in self.service_addresses.items()}
        lines = ["127.0.0.1 localhost", *(f"{address} {' '.join(of)}" for address, of in names.items())]
        self.hosts.write_text("\n".join(lines) + "\n")

    def lead(self, pod: Pod, network: str, change: str) -> None:
        """The addresses of services that select the pod move to it (add), or back to where nothing listens (del)."""
        for address, selector in self.service_addresses.values():
            if selector.items() <= pod.labels.items():
                places = [(network, "pod"), (self.bridge, "bridge")]
                # First there, then no longer here: one of them answers at any time.
                (to, there), (here, at) = places if change == "add" else reversed(places)
                command("ip", "-n", to, "addr", "add", f"{address}/32", "dev", there)
                command("ip", "-n", here, "addr", "del", f"{address}/32", "dev", at)
                for running in self.running.values():
                    subprocess.run(["ip", "-n", running.network, "neigh", "flush", "dev", "pod"], capture_output=True)

    # ------------------------------------------------------------------------------------------------------ pods

    def start(self, pod: Pod, machine: str = "") -> Running:
        """On the machine of this name, that of the pod itself if none is given."""
        life = self.lives[pod.name] = self.lives.get(pod.name, 0) + 1
        number = next(self.free)
        network, address = f"{self.bridge}-{number}", f"10.88.{number // 200}.{number % 200 + 1}"
        self.plug_in(network, address, number)
        self.addresses[pod.name] = address
        place = self.directory / f"{pod.name}-{life}"
        (place / "root").mkdir(parents=True)
        said = place / "said"
        user = pod.spec["securityContext"]
        line = ["ip", "netns", "exec", network, "unshare", "--mount", "--uts", "--pid", "--fork", HERE / "pod.sh"]
        line += [place / "root", pod.hostname, user["runAsUser"], user["runAsGroup"], self.mounts(pod, place)]
        environment = self.environment(pod, machine or f"machine-{pod.name}", address)
        line += ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        line += self.words(pod, environment)
        with said.open("wb") as out:
            process = subprocess.Popen(
                [*map(str, line)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=os.environ | {"KEPT_OUT": kept_out()},
            )  # fmt: skip
        self.running[pod.name] = Running(pod, process, said, network)
        self.list_names()
        self.lead(pod, network, "add")
        return self.running[pod.name]

    def plug_in(self, network: str, address: str, number: int) -> None:
        self.networks.append(network)
        command("ip", "netns", "add", network)
        command("ip", "-n", network, "link", "set", "lo", "up")
        peer = ("peer", f"pod{number}", "netns", self.bridge)
        command("ip", "link", "add", "pod", "netns", network, "type", "veth", *peer)
        command("ip", "-n", self.bridge, "link", "set", f"pod{number}", "master", "bridge", "up")
        command("ip", "-n", network, "addr", "add", f"{address}/16", "dev", "pod")
        command("ip", "-n", network, "link", "set", "pod", "up")
        command("ip", "-n", network, "route", "add", "10.96.0.0/16", "dev", "pod")

    def words(self, pod: Pod, environment: dict[str, str]) -> list[str]:
        words = [expanded(word, environment) for word in pod.container["command"]]
        return [word.replace("--rdzv-conf=", f"--rdzv-conf={CALM},") for word in words]

    def environment(self, pod: Pod, machine: str, address: str) -> dict[str, str]:
        found = {"PATH": PATH, "HOME": "/tmp", "HOSTNAME": pod.hostname, "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
        # The programs of a build look for what belongs to them where it was built.
        found |= {"TROUPE_LIB_DIR": f"{PROGRAMS}/libexec/troupe", "TROUPE_BIN_DIR": f"{PROGRAMS}/bin"}
        found |= {"PYTHONPATH": str(ROOT / "python")}
        found |= pod.variables
        return found | self.own_variables(pod, machine, address)

    def own_variables(self, pod: Pod, machine: str, address: str) -> dict[str, str]:
        found = {}
        fields = {"spec.nodeName": machine, "status.hostIP": machine, "status.podIP": address}
        for variable in pod.container.get("env", []):
            source = variable.get("valueFrom")
            found[variable["name"]] = fields[source["fieldRef"]["fieldPath"]] if source else variable["value"]
        return found

    def mounts(self, pod: Pod, place: Path) -> Path:
        lines = ["mode=1777 /tmp tmpfs", "mode=755 /run tmpfs", f"{self.hosts_of(pod, place)} /etc/hosts bind"]
        lines.append(f"{ROOT} {ROOT} bind")
        if not Path(sys.base_prefix).is_relative_to("/usr"):
            lines.append(f"{sys.base_prefix} {sys.base_prefix} bind")
        lines += [f"{self.programs / folder} {PROGRAMS}/{folder} bind" for folder in ("bin", "libexec")]
        volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
        for mount in pod.container["volumeMounts"]:
            if line := self.volume(volumes[mount["name"]], place, pod.spec["securityContext"]["fsGroup"]):
                lines.append(line.replace(" AT ", f" {mount['mountPath']} "))
        file = place / "mounts"
        file.write_text("\n".join(lines) + "\n")
        return file

    def hosts_of(self, pod: Pod, place: Path) -> Path:
        return self.hosts

    def volume(self, volume: Document, place: Path, group: int) -> str:
        name = volume["name"]
        if claim := volume.get("persistentVolumeClaim"):
            return f"{self.claim(claim['claimName'], group)} AT bind"
        if (empty := volume.get("emptyDir")) is not None:
            assert empty["medium"] == "Memory"
            return f"mode=1777,size={empty['sizeLimit'].removesuffix('i')} AT tmpfs"
        if secret := volume.get("secret"):
            write_volume(place / name, self.secrets[secret["secretName"]], secret["defaultMode"], group)
            return f"{place / name} AT bind"
        if configured := volume.get("configMap"):
            write_volume(place / name, self.config_maps.get(configured["name"], {}), 0o644, group)
            return f"{place / name} AT bind"
        assert "hostPath" in volume  # drivers, which this machine has none of
        return ""

    def claim(self, name: str, group: int = 1000) -> Path:
        """A volume that stays."""
        place = self.directory / "claims" / name
        if not place.exists():
            place.mkdir(parents=True)
            os.chown(place, 0, group)
            place.chmod(0o2775)
        return place

    # --------------------------------------------------------------------------------------------- what befalls them

    def lose(self, name: str) -> int:
        """All of its processes at once; its name and address go with it."""
        running = self.running[name]
        if first := running.first:
            os.kill(first, signal.SIGKILL)
        running.process.wait()
        self.forget(name)
        return 137

    def evict(self, name: str) -> int:
        """SIGTERM for process 1, and SIGKILL when the grace period is over. The exit code of the container."""
        running = self.running[name]
        if first := running.first:
            os.kill(first, signal.SIGTERM)
        try:
            running.process.wait(running.pod.spec["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            return self.lose(name)
        return self.forget(name).process.returncode

    def execute(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """As `kubectl exec` does: in the pod, as its user, with the environment of its process 1."""
        first, user = self.running[name].first, self.running[name].pod.spec["securityContext"]
        variables = Path(f"/proc/{first}/environ").read_bytes().decode().split("\0")
        inside = ["nsenter", "--target", first, "--mount", "--uts", "--net", "--pid", "--root", "--wd", "setpriv"]
        inside += ["--reuid", user["runAsUser"], "--regid", user["runAsGroup"], "--clear-groups"]
        line = [*map(str, inside), "env", "-i", *filter(None, variables), *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=WITHIN)

    def forget(self, name: str) -> Running:
        gone = self.running[name]
        self.addresses.pop(name)
        self.list_names()
        self.lead(gone.pod, gone.network, "del")
        # The cable goes with the pod: what dials its address has no answer.
        command("ip", "-n", gone.network, "link", "set", "pod", "down")
        return gone

    def ended(self, name: str, within: float = WITHIN) -> int:
        """The exit code of a pod that ends by itself."""
        try:
            return self.running[name].process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{name} has not ended within {within} s:\n{self.all_said()}") from None

    def said(self, name: str) -> str:
        return self.running[name].said.read_text(errors="replace")

    def all_said(self) -> str:
        files = sorted(self.directory.glob("*/said"), key=lambda file: file.stat().st_mtime)
        return "\n".join(f"--- {file.parent.name}:\n{file.read_text(errors='replace')}" for file in files)


def kept_out() -> str:
    """Folders of this machine that a pod does not see, but for what is mounted there."""
    ours = [ROOT] + ([] if Path(sys.base_prefix).is_relative_to("/usr") else [Path(sys.base_prefix)])
    return " ".join(sorted({"tmp", "run", "data", "journal", "opt", *(path.parts[1] for path in ours)}))


def expanded(word: str, environment: dict[str, str]) -> str:
    """$(NAME), as Kubernetes replaces it."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), word)


@contextlib.contextmanager
def kubelet(directory: Path, programs: Path, **objects: dict[str, dict[str, str]]) -> Iterator[Kubelet]:
    made = Kubelet(directory, programs, **objects)
    try:
        yield made
    finally:
        made.close()
