"""ElasticJobs for tests: the one of deploy/kubernetes for ms-swift, with a small training of PyTorch in its place."""

from __future__ import annotations

import copy
import json
import os
import signal
from pathlib import Path

from cluster import OWNERS, Cluster
from controllers import documents
from kubelet import ROOT
from machines import key_of
from objects import JOB_UID, all_objects
from server import Document

MANIFEST = ROOT / "deploy/kubernetes/elasticjob-swift.yaml"
GPU = "nvidia.com/gpu"
# Trains until it is told to finish; a machine that is said to be broken ends it with the code of broken hardware.
TRAINING = """
import os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from troupe.checkpoint import DdpCheckpointer, StorageType

place = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def exists(name):
    return os.path.exists(f"{place}/{name}")

def is_broken():
    return exists("broken") and open(f"{place}/broken").read() == os.environ["NODE_IP"]

with DdpCheckpointer(f"{place}/checkpoints") as checkpointer:
    step = checkpointer.load_checkpoint().get("step", 0)
    line = [os.environ["TROUPE_GENERATION"], rank, world, os.environ["POD_NAME"], step]
    with open(f"{place}/starts", "a") as file:
        file.write(" ".join(map(str, line)) + "\\n")
    is_over = torch.zeros(1)
    while not is_over:
        step += 1
        x = torch.randn(16, 32)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        checkpointer.save_checkpoint(step, {"step": step}, storage_type=StorageType.MEMORY)
        is_over[0] = float(rank == 0 and exists("finish"))
        dist.broadcast(is_over, 0)
        if is_broken():
            os._exit(201)
        if rank == 0:
            with open(f"{place}/step.new", "w") as file:
                file.write(str(step))
            os.rename(f"{place}/step.new", f"{place}/step")
        time.sleep(0.02)
dist.destroy_process_group()
"""
# Does not train: for what is asked of pods and of their job.
WAITING = """#!/bin/sh
echo "$TROUPE_GENERATION $RANK $WORLD_SIZE $POD_NAME 0" >>"$1/starts"
until [ -e "$1/finish" ]; do sleep 0.05; done
"""
FAILING = """#!/bin/sh
echo "$TROUPE_GENERATION $RANK $WORLD_SIZE $POD_NAME 0" >>"$1/starts"
exit 3
"""
# Rank 1 fails, and never twice in the same way.
CLIMBING = """#!/bin/sh
echo "$TROUPE_GENERATION $RANK $WORLD_SIZE $POD_NAME 0" >>"$1/starts"
[ "$RANK" = 1 ] && exit $(($(wc -l <"$1/starts") + 20))
until [ -e "$1/finish" ]; do sleep 0.05; done
"""
# Process 1 of a container gets no signal that it does not ask for: a script's last command has to take its place.
START = 'exec actor-launcher --nnodes 1:"$NODE_NUM" --nproc-per-node 1 --max-restarts {restarts} {script}\n'


def manifest(name: str, namespace: str, replicas: int) -> Document:
    [job] = documents(MANIFEST)
    job["metadata"] = {"name": name, "namespace": namespace}
    job["spec"]["replicaSpecs"]["worker"]["replicas"] = replicas
    return job


class Job:
    """One in a namespace of its own."""

    def __init__(self, cluster: Cluster, namespace: str, name: str = "words", *, replicas: int = 2, training: str = WAITING, restarts: int = 20):
        self.cluster, self.namespace, self.name = cluster, namespace, name
        # What the namespace has without it.
        self.before = set(all_objects(cluster.server, namespace))
        model = cluster.machines.claim("model", 0)
        self.place = model / f"{namespace}-{name}"
        self.place.mkdir()
        inside = Path("/model") / self.place.name
        script = inside / ("train.py" if training is TRAINING else "wait.sh")
        (self.place / script.name).write_text(training)
        (self.place / script.name).chmod(0o755)
        words = f"{'' if training is TRAINING else '--no-python '}{script} {inside}"
        (self.place / "start.sh").write_text(START.format(restarts=restarts, script=words))
        self.document = manifest(name, namespace, replicas)
        self.container["image"] = "local:1"
        self.container["command"] = ["/bin/bash", "-c", f"sh {inside}/start.sh"]

    @property
    def worker(self) -> Document:
        return self.document["spec"]["replicaSpecs"]["worker"]

    @property
    def container(self) -> Document:
        return self.worker["template"]["spec"]["containers"][0]

    @property
    def path(self) -> str:
        root, _, plural = OWNERS.rpartition("/")
        return f"{root}/namespaces/{self.namespace}/{plural}/{self.name}"

    def apply(self, **spec: object) -> Job:
        self.document["spec"] |= spec
        self.cluster.apply(copy.deepcopy(self.document))
        return self

    def patch(self, spec: Document) -> None:
        changed = self.cluster.server.patch(self.path, {"spec": spec})
        assert changed.status == 200, changed.body

    # ----------------------------------------------------------------------------------------------- what it tells

    @property
    def status(self) -> Document:
        return self.cluster.server.get(self.path).body.get("status", {})

    @property
    def uid(self) -> str:
        """Of the job that has the name now; none if there is none."""
        return self.cluster.server.get(self.path).body.get("metadata", {}).get("uid", "")

    def runs(self, uid: str) -> bool:
        """Whether the job of this uid has all of its pods, and its status says so."""
        pods = [pod for role in ("worker", "dlrover-master") for pod in self.live(role).values()]
        own = [pod for pod in pods if pod["metadata"]["labels"].get(JOB_UID) == uid]
        is_told = self.uid == uid and self.phase == "Running"
        return is_told and len(own) == self.worker["replicas"] + 1

    @property
    def phase(self) -> str:
        return self.status.get("phase", "")

    @property
    def columns(self) -> dict[str, str]:
        """Of kubectl get ej."""
        header, line = self.kubectl("get", "ej", self.name).splitlines()
        return dict(zip(header.split(), line.split(), strict=False))

    def condition(self, kind: str) -> str:
        """Reason and message, while it holds."""
        for each in self.status.get("status", {}).get("conditions", []):
            if each["type"] == kind and each["status"] == "True":
                return f"{each['reason']}: {each['message']}"
        return ""

    def all(self, role: str) -> list[Document]:
        return self.cluster.pods(self.namespace, f"elasticjob.dlrover/name={self.name},elasticjob.dlrover/replica-type={role}")

    def live(self, role: str = "worker") -> dict[str, Document]:
        """Pods that run and are to go on, by their names."""
        return {
            pod["metadata"]["name"]: pod
            for pod in self.all(role)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    @property
    def master(self) -> str:
        [only] = self.live("dlrover-master")
        return only

    def machine(self, pod: str) -> str:
        return self.live()[pod]["spec"]["nodeName"]

    # --------------------------------------------------------------------------------------------- how it trains

    @property
    def starts(self) -> list[list[str]]:
        file = self.place / "starts"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def generation(self) -> int:
        return max((int(line[0]) for line in self.starts), default=0)

    @property
    def world(self) -> set[str]:
        """The pods of the newest one; none while not all of its ranks have started."""
        newest = [line for line in self.starts if int(line[0]) == self.generation]
        return {line[3] for line in newest} if newest and len(newest) == int(newest[0][2]) else set()

    @property
    def step(self) -> int:
        file = self.place / "step"
        return int(file.read_text()) if file.exists() else 0

    def trains(self, nodes: int, after: int = 0, within: float = 60.0) -> set[str]:
        """Waits for a world of so many pods, which is newer than a generation."""

        def does() -> bool:
            return self.generation > after and len(self.world) == nodes == len(self.world & self.live().keys())

        self.cluster.until(does, self.told, within)
        return self.world

    def trains_on(self, steps: int = 20) -> None:
        """Without a start of any worker."""
        started, last = self.starts, self.step + steps
        self.cluster.until(lambda: self.step >= last, self.told)
        assert self.starts == started, self.told()

    def until(self, condition: object, within: float = 60.0) -> None:
        self.cluster.until(condition, self.told, within)

    def told(self) -> str:
        lines = [f"{self.phase}, step {self.step}, starts {self.starts[-8:]}", json.dumps(self.status)]
        for pod in self.all("dlrover-master") + self.all("worker"):
            name = pod["metadata"]["name"]
            where = f"{pod['spec'].get('nodeName')}, {pod['status']['phase']}"
            where += ", is being deleted" if "deletionTimestamp" in pod["metadata"] else ""
            lines.append(f"--- {name} ({where}):\n{self.cluster.said(self.namespace, name)[-2500:]}")
        lines.append(f"--- operators:\n{self.cluster.said('troupe', 'troupe')[-2500:]}")
        return "\n".join(lines)

    # ------------------------------------------------------------------------------------------ what befalls it

    def kubectl(self, *words: object, input: str = "") -> str:
        done = self.cluster.server.kubectl(*words, "-n", self.namespace, input=input)
        assert done.returncode == 0, f"{words}: {done.stderr}\n{self.told()}"
        return done.stdout

    def finish(self) -> None:
        (self.place / "finish").touch()

    def begin_anew(self) -> None:
        """For another job of this name: what the first has left of its training is gone."""
        for name in ("finish", "starts"):
            (self.place / name).unlink(missing_ok=True)

    def kill_pod(self, name: str) -> None:
        self.cluster.machines.kill(f"{self.namespace}.{name}")

    def kill_worker(self, pod: str) -> None:
        """The training process, and nothing else."""
        processes = self.cluster.machines.processes(f"{self.namespace}.{pod}")
        [pid] = [pid for pid, line in processes.items() if "train.py" in line and "actor-launcher" not in line and "python" in line]
        os.kill(pid, signal.SIGKILL)


def key(job: Job, pod: str) -> str:
    return key_of({"metadata": {"namespace": job.namespace, "name": pod}})
