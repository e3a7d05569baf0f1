"""The pods of each manifest, as real processes: they find each other, and a loss is what docs/kubernetes.md says of it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import TOKEN, Cluster
from controllers import Pod, documents, pods
from kubelet import Kubelet, MANIFESTS, ROOT, until

# Writes down its rank and pod at each start, and ends when it is told to.
WORKER = """
import os, socket, sys, time
line = [os.environ[name] for name in ("TROUPE_GENERATION", "RANK", "WORLD_SIZE")] + [socket.gethostname()]
secrets = sum("TOKEN" in name for name in os.environ)
ranks = [os.environ.get("RANK_AFTER_ACC", "-"), os.environ.get("GROUP_RANK")]
with open("/data/starts", "a") as file:
    file.write(" ".join([*line, str(os.getuid()), str(secrets), *ranks]) + "\\n")
while not os.path.exists("/data/finish"):
    time.sleep(0.05)
sys.exit(int(open("/data/finish").read() or 0))
"""
OF_JOBS = [manifest for manifest in MANIFESTS if pods(documents(manifest))]
ELASTIC = [manifest for manifest in OF_JOBS if manifest.stem in ("volcano-job-elastic", "jobset")]
WITH_MASTER = [manifest.stem for manifest in ELASTIC]
ISOLATED_AFTER = 15.0


def manifest_named(name: str) -> Path:
    return next(manifest for manifest in MANIFESTS if manifest.stem == name)


def starts(kubelet: Kubelet) -> list[list[str]]:
    file = kubelet.claim("words") / "starts"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def world(kubelet: Kubelet) -> dict[str, list[int]]:
    """The newest one: the ranks of each pod. Nothing while not all of its ranks have started."""
    lines = starts(kubelet)
    newest = [line for line in lines if line[0] == max(line[0] for line in lines)]
    if not newest or len(newest) != int(newest[0][2]):
        return {}
    found: dict[str, list[int]] = {}
    for line in newest:
        found.setdefault(line[3], []).append(int(line[1]))
    return {pod: sorted(ranks) for pod, ranks in found.items()}


def train(kubelet: Kubelet, nodes: set[str], within: float = 60.0) -> dict[str, list[int]]:
    """Waits for a world of these pods."""
    until(lambda: world(kubelet).keys() == nodes, lambda: f"{world(kubelet)}\n{kubelet.all_said()}", within)
    return world(kubelet)


def finish(kubelet: Kubelet, exit_code: int = 0) -> dict[str, int]:
    (kubelet.claim("words") / "finish").write_text(str(exit_code))
    return {name: kubelet.ended(name) for name in kubelet.addresses}


def nodes_of(all_pods: list[Pod]) -> dict[str, Pod]:
    return {pod.name: pod for pod in all_pods if pod.container["command"][0] == "actor-launcher"}


def tor_list(machines: list[str]) -> str:
    """As the plug-in configmap1980 writes it: two switches, and machines plugged into them in turns."""
    servers = [
        {"server_id": machine, "device": [{"device_id": "0", "device_ip": f"10.1.0.{i}", "tor_ip": f"10.2.0.{i % 2}"}]}
        for i, machine in enumerate(machines)
    ]
    return str({"server_list": servers}).replace("'", '"')


@pytest.mark.parametrize("manifest", OF_JOBS, ids=lambda manifest: manifest.stem)
def test_the_pods_train_together(cluster: Cluster, manifest: Path) -> None:
    all_pods = pods(documents(manifest))
    machines = {pod.name: f"machine-{i}" for i, pod in enumerate(nodes_of(all_pods).values())}
    torlist = {"torlist-words": {"ranktable_tor.json": tor_list(list(machines.values()))}}
    kubelet = cluster(manifest, WORKER, **torlist)
    # The last first: each waits for those that it needs.
    for pod in reversed(all_pods):
        kubelet.start(pod, machines.get(pod.name, ""))
    ranks = train(kubelet, set(machines))
    assert {line[4] for line in starts(kubelet)} == {"1000"}
    assert {line[5] for line in starts(kubelet)} == {"0"}, "workers are told where the token is"
    if manifest.stem not in WITH_MASTER:
        first = next(iter(machines))
        assert "this node runs the job's master" in kubelet.said(first)
        assert 0 in ranks[first]
    if "topology" in manifest.stem or "ranktable" in manifest.stem:
        in_turns = list(machines)
        assert sorted(machines, key=ranks.__getitem__) == in_turns[::2] + in_turns[1::2]
        assert all(line[6] == line[7] for line in starts(kubelet)[-len(ranks) :])
    elif manifest.stem not in WITH_MASTER:
        assert sorted(machines, key=ranks.__getitem__) == list(machines)
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()
    assert TOKEN not in kubelet.all_said()


def but_long(manifests: list[Path], often: str) -> list:
    """All of them, those marked as long that are not that one."""
    return [one if one.stem == often else pytest.param(one, marks=pytest.mark.long) for one in manifests]


@pytest.fixture(params=but_long(ELASTIC, "volcano-job-elastic"), ids=lambda manifest: manifest.stem)
def elastic(request: pytest.FixtureRequest, cluster: Cluster) -> tuple[Kubelet, dict[str, Pod], Pod]:
    """A job of four nodes that trains, its nodes and its master."""
    all_pods = pods(documents(request.param))
    nodes = nodes_of(all_pods)
    [master] = [pod for pod in all_pods if pod.name not in nodes]
    kubelet = cluster(request.param, WORKER)
    for pod in all_pods:
        kubelet.start(pod)
    train(kubelet, set(nodes))
    return kubelet, nodes, master


def test_others_train_on_until_a_pod_that_was_killed_is_back(elastic: tuple[Kubelet, dict[str, Pod], Pod]) -> None:
    """RestartPod, or a Job's next pod: the same name and index, another address, and nothing in its memory."""
    kubelet, nodes, _ = elastic
    gone = list(nodes)[1]
    kubelet.lose(gone)
    train(kubelet, nodes.keys() - {gone})
    kubelet.start(nodes[gone])
    train(kubelet, set(nodes))
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()


def test_the_job_can_be_looked_at_and_scaled_from_its_masters_pod(elastic: tuple[Kubelet, dict[str, Pod], Pod]) -> None:
    """By the commands of docs/kubernetes.md."""
    kubelet, nodes, master = elastic
    page = (ROOT / "docs/kubernetes.md").read_text()
    look, scale = (words.split() for words in re.findall(r"^kubectl exec words-master-0 -- (.*)$", page, re.M))
    shown = kubelet.execute(master.name, *look)
    assert shown.returncode == 0, shown.stderr + kubelet.all_said()
    assert "membership" in shown.stdout and "worker_group" in shown.stdout, shown.stdout
    scaled = kubelet.execute(master.name, *scale)
    assert scaled.stdout.startswith("the job is one of 2 to 6 nodes now; 4 nodes run workers"), scaled.stderr


def test_an_evicted_pod_leaves_and_costs_nothing(elastic: tuple[Kubelet, dict[str, Pod], Pod]) -> None:
    kubelet, nodes, master = elastic
    gone = list(nodes)[3]
    assert kubelet.evict(gone) == 143
    train(kubelet, nodes.keys() - {gone})
    assert "not counted against --max-restarts" in kubelet.said(master.name)
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()


@pytest.mark.parametrize("elastic", [manifest_named("volcano-job-elastic")], indirect=True, ids=["volcano-job-elastic"])
def test_training_goes_on_while_the_master_is_moved(elastic: tuple[Kubelet, dict[str, Pod], Pod]) -> None:
    """Evicted, away for longer than a cut network is borne, and somewhere else with its journal."""
    kubelet, nodes, master = elastic
    before = starts(kubelet)
    assert kubelet.evict(master.name) == 137, "it ended the job"
    time.sleep(ISOLATED_AFTER + 3)  # that nothing happens cannot be waited for
    kubelet.start(master)
    until(lambda: "all workers run (they were started already)" in kubelet.said(master.name), kubelet.all_said)
    assert starts(kubelet) == before, "workers were ended meanwhile"
    # And it is a master again.
    gone = list(nodes)[0]
    kubelet.lose(gone)
    train(kubelet, nodes.keys() - {gone})
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()


def test_a_master_without_its_journal_starts_the_workers_again(
    elastic: tuple[Kubelet, dict[str, Pod], Pod],
) -> None:
    kubelet, nodes, master = elastic
    kubelet.lose(master.name)
    for file in kubelet.claim("words-master").iterdir():
        file.unlink()
    before = starts(kubelet)
    kubelet.start(master)
    newest = max(line[0] for line in before)
    until(lambda: max(line[0] for line in starts(kubelet)) > newest, kubelet.all_said)
    train(kubelet, set(nodes))
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()


def test_training_that_fails_is_the_masters_to_tell(elastic: tuple[Kubelet, dict[str, Pod], Pod]) -> None:
    """By an exit code that the policies know: 3 after failures without progress."""
    kubelet, _, master = elastic
    ended = finish(kubelet, exit_code=7)
    assert ended.pop(master.name) == 3, kubelet.all_said()
    assert set(ended.values()) == {3}, kubelet.all_said()


STATIC = [m for m in OF_JOBS if m.stem in ("volcano-job", "indexed-job", "trainjob")]


@pytest.mark.parametrize("manifest", but_long(STATIC, "volcano-job"), ids=lambda manifest: manifest.stem)
def test_a_job_of_all_its_nodes_waits_for_those_that_are_replaced(cluster: Cluster, manifest: Path) -> None:
    """Another one first, then the first one, which runs the master: its successor begins with what the others tell."""
    kubelet, nodes = cluster(manifest, WORKER), nodes_of(pods(documents(manifest)))
    for pod in nodes.values():
        kubelet.start(pod)
    generations = [next(iter(starts(kubelet)), ["0"])[0]]
    for gone in (list(nodes)[2], list(nodes)[0]):
        ranks = train(kubelet, set(nodes))
        generations.append(max(line[0] for line in starts(kubelet)))
        kubelet.lose(gone)
        kubelet.start(nodes[gone])
        until(lambda: max(line[0] for line in starts(kubelet)) > generations[-1], kubelet.all_said)
        assert train(kubelet, set(nodes)) == ranks
    assert set(finish(kubelet).values()) == {0}, kubelet.all_said()


def test_the_first_pods_eviction_ends_the_job_and_says_so_by_its_exit_codes(cluster: Cluster) -> None:
    """So a policy for pods that fail has to start all of them again."""
    manifest = manifest_named("volcano-job")
    kubelet, nodes = cluster(manifest, WORKER), nodes_of(pods(documents(manifest)))
    for pod in nodes.values():
        kubelet.start(pod)
    train(kubelet, set(nodes))
    first, *others = nodes
    assert kubelet.evict(first) == 143
    assert {kubelet.ended(name) for name in others} == {1}, kubelet.all_said()


def test_hypernodes_tell_the_same_network_as_the_config_map(launcher: Path, tmp_path: Path) -> None:
    """What is left of `kubectl get nodes,hypernodes -o json` by the filter on docs/kubernetes.md."""
    [configured] = [d for d in documents(manifest_named("volcano-job-topology")) if d["kind"] == "ConfigMap"]
    hypernodes = [
        {"kind": d["kind"], "spec": d["spec"], "metadata": d["metadata"], "status": {"addresses": None}}
        for d in documents(manifest_named("hypernodes"))
    ]
    machines = [line.split()[2] for line in configured["data"]["topology_config"].splitlines()]
    nodes = [
        {
            "kind": "Node",
            "spec": {"tier": None, "members": None},
            "metadata": {"name": machine, "labels": {"kubernetes.io/hostname": machine}},
            "status": {"addresses": [{"type": "InternalIP", "address": f"10.0.0.{i}"}]},
        }
        for i, machine in enumerate(machines)
    ]

    def ranks(text: str) -> list[tuple[str, list[str]]]:
        file = tmp_path / "network"
        file.write_text(text)
        line = [str(launcher), "--print-ranks", "--topology", str(file), "json"]
        printed = subprocess.run(line, capture_output=True, text=True, timeout=60)
        assert printed.returncode == 0, printed.stderr
        return sorted((n["node"], n["switches"]) for n in json.loads(printed.stdout)["ranks"])

    told = ranks(json.dumps({"kind": "List", "items": nodes + hypernodes}))
    assert told == ranks(configured["data"]["topology_config"])


def test_a_wrong_option_is_told_by_an_exit_code_that_the_policies_know(cluster: Cluster) -> None:
    manifest = manifest_named("volcano-job")
    [pod, *_] = pods(documents(manifest))
    pod.container["command"].insert(1, "--nnods=4")
    kubelet = cluster(manifest, WORKER)
    kubelet.start(pod)
    assert kubelet.ended(pod.name) == 2, kubelet.all_said()


def test_a_pod_without_the_token_is_turned_away(cluster: Cluster) -> None:
    manifest = manifest_named("volcano-job")
    first, second, *_ = pods(documents(manifest))
    kubelet = cluster(manifest, WORKER)
    kubelet.start(first)
    kubelet.secrets["words-token"] = {"token": TOKEN[::-1]}
    kubelet.start(second)
    told = "its job token is another one than ours"
    until(lambda: told in kubelet.said(second.name), kubelet.all_said)


def test_ddp_goes_on_from_memory_in_a_volcano_job_that_loses_a_pod(cluster: Cluster) -> None:
    """The example of deploy/examples, with PyTorch."""
    manifest = manifest_named("volcano-job-elastic")
    master, first, second, *_ = pods(documents(manifest))
    kubelet = cluster(manifest, (ROOT / "deploy/examples/ddp.py").read_text())
    for pod in (first, second):
        # Enough steps for what is done below, and one rank in each pod: this is a small machine.
        pod.container["command"] = [*pod.container["command"], "3000"]
        pod.variables["PET_NPROC_PER_NODE"] = "1"
        pod.container["command"].remove("--nproc-per-node=auto")
    for pod in (master, first, second):
        kubelet.start(pod)
    checkpoints = kubelet.claim("words") / "checkpoints"
    until(lambda: list(checkpoints.glob("*")) and "begins with step" in kubelet.all_said(), kubelet.all_said, 120)
    kubelet.lose(second.name)
    kubelet.start(second)
    until(lambda: "training goes on from step" in kubelet.all_said(), kubelet.all_said, 120)
    # Of the two ranks the first says where it has it from, and either pod may have become that one.
    from_memory = r"goes on from step [1-9]\d*, which rank \d+ has from (memory|a peer)"
    assert re.search(from_memory, kubelet.all_said()), kubelet.all_said()
    ended = {pod.name: kubelet.ended(pod.name, 240) for pod in (master, first, second)}
    assert set(ended.values()) == {0}, kubelet.all_said()
    assert "ends after step 3000" in kubelet.all_said()
