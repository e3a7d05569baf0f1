"""The promises of the guides of DLRover and ms-swift; docs/guide.md has them in tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import OWNERS, Cluster
from installed import Operators
from jobs import CLIMBING, TRAINING, WAITING, Job
from server import Document

from kubelet import PATH, PYTHON, ROOT

WITHIN = 120.0
MACHINES = [f"machine-{number}" for number in range(1, 5)]
# The command of the second wheel, which is not installed here.
DLROVER_RUN = f"""#!/bin/sh
export PYTHONPATH="$PYTHONPATH:{ROOT}/python/dlrover_names"
exec {PYTHON} -c 'from troupe_dlrover_names.run import main; main()' "$@"
"""


class GuideJob(Job):
    """As the guide writes it: dlrover-run, with its options, is the command of the pods."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        options: str,
        *,
        nnodes: str = "$NODE_NUM",
        before: str = "",
        replicas: int = 3,
        training: str = WAITING,
    ) -> None:
        super().__init__(cluster, namespace, replicas=replicas, training=training)
        program = self.place / "bin/dlrover-run"
        program.parent.mkdir()
        program.write_text(DLROVER_RUN)
        program.chmod(0o755)
        inside = Path("/model") / self.place.name
        line = f"exec dlrover-run --nnodes={nnodes} {options} --nproc_per_node=1 --no-python "
        line += f"{inside}/wait.sh {inside}"
        self.container["command"] = ["/bin/bash", "-c", before + line]
        self.container["env"] = [{"name": "PATH", "value": f"{inside}/bin:{PATH}"}]

    @property
    def said_by_master(self) -> str:
        return self.cluster.said(self.namespace, f"elasticjob-{self.name}-dlrover-master-0")


@pytest.fixture
def cluster(elastic: tuple[Cluster, Operators]) -> Iterator[Cluster]:
    """Its machines take pods, whatever other tests have left."""
    made, _ = elastic
    free(made)
    yield made
    for job in made.server.get(OWNERS).body["items"]:
        about = job["metadata"]
        if about["namespace"].startswith("guide-"):
            made.server.kubectl("delete", "ej", about["name"], "-n", about["namespace"])
    free(made)


def free(cluster: Cluster) -> None:
    """No machine is marked."""
    for machine in MACHINES:
        spec = {"taints": None, "unschedulable": None}
        changed = cluster.server.patch(f"/api/v1/nodes/{machine}", {"spec": spec})
        assert changed.status == 200, changed.body


def address(cluster: Cluster, machine: str) -> str:
    return cluster.machines.address_of_machine(machine)


def test_nodes_are_checked_before_training_starts(cluster: Cluster) -> None:
    job = GuideJob(
        cluster, cluster.namespace("guide-check"), "--network-check --max_restarts=1"
    ).apply()
    job.trains(3, within=WITHIN)
    assert "3 nodes checked in" in job.said_by_master and "all are good" in job.said_by_master, (
        job.told()
    )
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)


def pair(bandwidth: int) -> Document:
    """Two devices of a node, and the switch between them."""
    link = {"first": 0, "second": 1, "bandwidth": 20000, "back": bandwidth, "channels": 2}
    return {"devices": [{"copies": 2}], "pairs": [link]}


SWITCHES = "--switchbox-check --box-pairs 0:1 --min-bandwidth 15000 --min-channels 2"
# Options beside --network-check, a good node's devices, a faulty one's, and what is said of it.
FAULTS = {
    "device": (
        "",
        {"devices": [{}]},
        {"devices": [{"failed": "it computes nonsense"}]},
        "it computes nonsense",
    ),
    "switch": (SWITCHES, pair(18000), pair(14999), "14999"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_faulty_node_is_tainted_and_a_new_one_joins(cluster: Cluster, what: str) -> None:
    """Its devices are simulated, and it would have room for a pod."""
    more, good, faulty, said = FAULTS[what]
    broken = MACHINES[1]
    name = f"guide-faulty-{what}"
    devices = f"export TROUPE_PROBE_DEVICES=/model/{name}-words/$NODE_NAME.json; "
    options = f"--network-check {more} --max_restarts=1"
    job = GuideJob(cluster, cluster.namespace(name), options, before=devices)
    for machine in MACHINES:
        described = json.dumps(faulty if machine == broken else good)
        (job.place / f"{machine}.json").write_text(described)
    # The first three pods are on the others, the faulty one among them.
    cluster.server.kubectl("cordon", MACHINES[0])
    job.apply()
    placed = lambda: [pod for pod in job.all("worker") if pod["spec"].get("nodeName")]
    job.until(lambda: len(placed()) == 3, WITHIN)
    cluster.server.kubectl("uncordon", MACHINES[0])
    pods = job.trains(3, within=WITHIN)
    assert said in job.said_by_master, job.told()
    assert {job.machine(pod) for pod in pods} == set(MACHINES) - {broken}
    taint = {"key": "troupe/faulty", "value": job.name, "effect": "NoSchedule"}
    node = lambda: cluster.server.get(f"/api/v1/nodes/{broken}").body
    job.until(lambda: taint in node()["spec"].get("taints", []), WITHIN)
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)


def test_restarts_in_a_pod_then_new_pods_of_the_rank_then_the_end(cluster: Cluster) -> None:
    """One restart in each pod, and two further pods: three pods start the worker twice each."""
    job = GuideJob(
        cluster,
        cluster.namespace("guide-ladder"),
        "--max_restarts=1",
        replicas=2,
        training=CLIMBING,
    )
    job.worker["restartCounts"] = 2
    job.apply()
    job.until(lambda: job.phase == "Failed", WITHIN)
    assert "restartCounts 2" in job.condition("Failed"), job.told()
    failed = [pod for generation, rank, world, pod, step in job.starts if rank == "1"]
    pods = list(dict.fromkeys(failed))
    assert failed == [pod for pod in pods for _ in range(2)] and len(pods) == 3, job.told()
    job.until(lambda: (job.columns["PHASE"], job.columns["RESTARTS"]) == ("Failed", "2"), WITHIN)
    assert list(job.columns) == ["NAME", "PHASE", "NODES", "RESTARTS", "AGE"]


def test_ranks_follow_the_switches_of_the_config_map(cluster: Cluster) -> None:
    """Two machines below each of two switches, in lines that do not have them together."""
    job = GuideJob(cluster, cluster.namespace("guide-topology"), "--max_restarts=1", replicas=4)
    switch = dict(zip(MACHINES, ["asw-0", "asw-1", "asw-0", "asw-1"], strict=True))
    lines = "".join(f"{switch[each]} psw-0 {address(cluster, each)}\n" for each in MACHINES)
    about = {"name": "node-topology-config", "namespace": job.namespace}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": about,
            "data": {"topology_config": lines},
        }
    )
    job.apply()
    job.trains(4, within=WITHIN)
    starts = sorted(job.starts, key=lambda line: int(line[1]))
    by_rank = [job.machine(pod) for generation, rank, world, pod, step in starts]
    pairs = [[switch[machine] for machine in by_rank[at : at + 2]] for at in (0, 2)]
    assert sorted(pairs) == [["asw-0"] * 2, ["asw-1"] * 2], job.told()
    [line] = [line for line in job.said_by_master.splitlines() if "nodes of rank 0 to 3:" in line]
    places = [line.index(f"/{address(cluster, machine)})") for machine in by_rank]
    assert places == sorted(places), line
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)


def test_training_starts_with_the_nodes_that_are_there_and_takes_in_more(cluster: Cluster) -> None:
    """And goes on with fewer when a machine is lost and no other comes."""
    job = GuideJob(cluster, cluster.namespace("guide-elastic"), "--max_restarts=1", nnodes="2:3")
    for machine in MACHINES[:2]:
        cluster.server.kubectl("cordon", machine)
    job.apply()
    first = job.trains(2, within=WITHIN)
    job.until(lambda: "PodPending" in job.condition("Blocked"), WITHIN)
    before = job.generation
    cluster.server.kubectl("uncordon", MACHINES[0])
    pods = job.trains(3, after=before, within=WITHIN)
    assert first < pods
    before = job.generation
    gone = next(pod for pod in pods if job.machine(pod) == MACHINES[0])
    cluster.server.kubectl("cordon", MACHINES[0])
    job.kill_pod(gone)
    assert job.trains(2, after=before, within=WITHIN) == first
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)


def test_a_job_of_one_node_grows_to_three_and_shrinks_to_two(cluster: Cluster) -> None:
    """The job of ms-swift's guide: a script with --nnodes 1:$NODE_NUM. No step is lost."""
    swift = Job(cluster, cluster.namespace("guide-swift"), replicas=1, training=TRAINING).apply()
    swift.trains(1, within=WITHIN)
    swift.trains_on()
    for nodes in (3, 2):
        before, step = swift.generation, swift.step
        swift.kubectl("scale", "ej", swift.name, "--replicas", nodes)
        swift.trains(nodes, after=before, within=WITHIN)
        newest = [line for line in swift.starts if int(line[0]) == swift.generation]
        assert all(int(line[4]) >= step for line in newest), swift.told()
        swift.trains_on()
        swift.until(lambda nodes=nodes: swift.columns["NODES"] == str(nodes), WITHIN)
        assert swift.columns["PHASE"] == "Running"
    swift.finish()
    swift.until(lambda: swift.phase == "Succeeded", WITHIN)
