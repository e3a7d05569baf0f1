"""What becomes of a manifest: the pods that its controller would make, with their names and variables. Pure.

A stand-in for Volcano's, Kubernetes', the JobSet's and Kubeflow's controllers, as far as a pod can see them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]
TRAINER_PORT = "29500"


@dataclass
class Pod:
    name: str
    spec: Document
    hostname: str
    subdomain: str
    labels: dict[str, str]
    # What a controller adds to the environment, before the container's own.
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def container(self) -> Document:
        [only] = self.spec["containers"]
        return only

    @property
    def names(self) -> list[str]:
        """By which other pods of the namespace find it."""
        return [self.hostname, f"{self.hostname}.{self.subdomain}"]


def documents(file: Path) -> list[Document]:
    with file.open() as text:
        return [document for document in yaml.safe_load_all(text) if document]


def pods(manifest: list[Document]) -> list[Pod]:
    runtimes = {d["metadata"]["name"]: d for d in manifest if d["kind"] == "TrainingRuntime"}
    found: list[Pod] = []
    for document in manifest:
        name, kind = document["metadata"]["name"], document["kind"]
        if kind == "Pod":
            spec = document["spec"]
            found.append(Pod(name, spec, spec["hostname"], spec["subdomain"], document["metadata"]["labels"]))
        elif kind == "Job" and document["apiVersion"].startswith("batch.volcano.sh/"):
            found += volcano(name, document["spec"])
        elif kind == "Job":
            found += indexed(name, document["spec"], document["spec"]["template"]["spec"]["subdomain"])
        elif kind == "JobSet":
            found += job_set(name, document["spec"])
        elif kind == "TrainJob":
            found += train_job(name, document["spec"], runtimes[document["spec"]["runtimeRef"]["name"]])
    return found


def made(name: str, template: Document, subdomain: str, variables: dict[str, str]) -> Pod:
    return Pod(name, copy.deepcopy(template["spec"]), name, subdomain, template["metadata"]["labels"], variables)


def volcano(name: str, job: Document) -> Iterator[Pod]:
    """With the plug-ins env and svc."""
    listed: dict[str, str] = {}
    for task in job["tasks"]:
        word = task["name"].replace("-", "_").upper()
        hosts = [f"{name}-{task['name']}-{index}.{name}" for index in range(task["replicas"])]
        listed |= {f"VC_{word}_HOSTS": ",".join(hosts), f"VC_{word}_NUM": str(len(hosts))}
    for task in job["tasks"]:
        for index in range(task["replicas"]):
            of_task = {"VC_TASK_INDEX": str(index), "VK_TASK_INDEX": str(index)}
            pod = f"{name}-{task['name']}-{index}"
            yield made(pod, task["template"], name, of_task | listed)


def indexed(name: str, job: Document, subdomain: str) -> Iterator[Pod]:
    assert job["completionMode"] == "Indexed"
    for index in range(job["parallelism"]):
        pod = f"{name}-{index}"
        yield made(pod, job["template"], subdomain, {"JOB_COMPLETION_INDEX": str(index)})


def job_set(name: str, spec: Document) -> Iterator[Pod]:
    subdomain = spec.get("network", {}).get("subdomain", name)
    for part in spec["replicatedJobs"]:
        for replica in range(part.get("replicas", 1)):
            job = {"completionMode": "Indexed"} | part["template"]["spec"]
            yield from indexed(f"{name}-{part['name']}-{replica}", job, subdomain)


def train_job(name: str, job: Document, runtime: Document) -> Iterator[Pod]:
    """With the Trainer's plug-in for torch: the runtime's JobSet, sized and told so."""
    spec = copy.deepcopy(runtime["spec"]["template"]["spec"])
    trainer, policy = job["trainer"], runtime["spec"]["mlPolicy"]
    nodes = trainer.get("numNodes", policy["numNodes"])
    [part] = spec["replicatedJobs"]
    part["template"]["spec"] |= {"parallelism": nodes, "completions": nodes}
    [container] = part["template"]["spec"]["template"]["spec"]["containers"]
    assert (part["name"], container["name"]) == ("node", "node"), "the Trainer knows no others"
    container["resources"] = trainer["resourcesPerNode"]
    for pod in job_set(name, spec):
        pod.variables |= {
            "PET_NNODES": str(nodes),
            "PET_NPROC_PER_NODE": str(trainer.get("numProcPerNode", policy["torch"]["numProcPerNode"])),
            "PET_NODE_RANK": pod.variables["JOB_COMPLETION_INDEX"],
            "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
            "PET_MASTER_PORT": TRAINER_PORT,
        }
        yield pod
