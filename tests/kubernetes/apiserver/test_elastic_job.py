"""ElasticJobs on a real API server, with real processes in the place of pods: what users do, and what befalls clusters."""

from __future__ import annotations

import time

import pytest
from cluster import Cluster
from installed import Operators
from jobs import CLIMBING, FAILING, TRAINING, Job
from objects import all_objects

LEASE_LASTS, AWAY = 15.0, 30.0
GIVEN_UP_AFTER = 70.0  # 40 s until Kubernetes believes that a machine is gone, 30 s that its master's pod tolerates
LOSS_IS_NOTICED = 10.0  # with the patience that ends 3 s after it


@pytest.fixture
def job(elastic: tuple[Cluster, Operators], request: pytest.FixtureRequest) -> Job:
    """In a namespace of its own, and not applied yet."""
    cluster, _ = elastic
    name = request.node.name.replace("test_", "").replace("_", "-")[:40].strip("-")
    made = Job(cluster, cluster.namespace(name))
    request.addfinalizer(lambda: cluster.server.ask("DELETE", made.path, None))
    return made


# ------------------------------------------------------------------------------------- what is wrong, and is told


def test_a_program_that_cannot_start_is_not_tried_on_pod_after_pod(elastic: tuple[Cluster, Operators]) -> None:
    """What ends the job ends its pods with codes for which single pods would be replaced."""
    cluster, _ = elastic
    failing = Job(cluster, cluster.namespace("failing"), training=FAILING, restarts=1).apply()
    failing.until(lambda: failing.phase == "Failed")
    assert "exit code 3" in failing.condition("Failed"), failing.told()
    failing.until(lambda: not failing.live() and not failing.live("dlrover-master"))
    time.sleep(3.0)  # in which there would be some
    # One may leave with its restarts used up before the other has the same failure.
    assert 2 <= len(failing.all("worker")) <= 3, failing.told()
    assert 2 <= len({line[0] for line in failing.starts}) <= 3


def test_restarts_then_a_pod_elsewhere_then_the_end(elastic: tuple[Cluster, Operators]) -> None:
    """In a job of fixed size."""
    cluster, _ = elastic
    job = Job(cluster, cluster.namespace("ladder"), training=CLIMBING, restarts=1)
    job.document["metadata"]["annotations"] = {"troupe/nnodes": "2:2"}
    job.worker["restartCounts"] = 1
    job.apply()
    job.until(lambda: job.phase == "Failed")
    assert "gets no further pod" in job.condition("Failed"), job.told()
    failed = [pod for generation, rank, world, pod, step in job.starts if rank == "1"]
    first, second = dict.fromkeys(failed)
    assert failed == [first] * 2 + [second] * 2
    machines = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in job.all("worker")}
    assert machines[first] != machines[second]

    def listed() -> list[str]:
        return cluster.server.kubectl("get", "ej", job.name, "-n", job.namespace).stdout.splitlines()[1].split()

    # The status may be written a little later.
    job.until(lambda: listed()[1:4:2] == ["Failed", "1"])


def test_an_operator_without_definitions_says_so_once_and_waits(elastic: tuple[Cluster, Operators]) -> None:
    """They were installed after it."""
    _, operators = elastic
    told = operators.told_without_definitions
    assert told.count("elasticjobs") == 1, told
    assert operators.restarts() == 0


def test_a_job_that_is_wrong_is_told_by_its_field_and_others_go_on(job: Job) -> None:
    cluster = job.cluster
    job.worker["replicas"] = 0
    job.apply()
    job.until(lambda: job.phase == "Failed")
    wrong = "InvalidSpec: spec.replicaSpecs.worker.replicas is 0: a whole number from 1 to 10000 is possible"
    assert job.condition("Failed") == wrong
    other = Job(cluster, job.namespace, "other", replicas=1).apply()
    other.trains(1)
    other.finish()
    other.until(lambda: other.phase == "Succeeded")
    # What was wrong can be mended.
    job.worker["replicas"] = 1
    job.apply()
    job.trains(1)


def test_a_right_that_lacks_is_told_by_its_verb(job: Job) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/troupe"
    rules = job.cluster.server.get(role).body["rules"]
    without = [rule | {"resources": [r for r in rule["resources"] if r != "services"]} for rule in rules]
    assert job.cluster.server.patch(role, {"rules": without}).status == 200
    try:
        job.apply()
        job.until(lambda: job.condition("Blocked"), within=20)
        assert 'cannot patch resource "services"' in job.condition("Blocked")
    finally:
        assert job.cluster.server.patch(role, {"rules": rules}).status == 200


def test_an_image_that_cannot_be_pulled_is_told(job: Job) -> None:
    job.container["image"] = "missing:1"
    job.apply()
    job.until(lambda: "missing:1" in job.condition("Blocked"))
    assert job.phase == "Pending"


# --------------------------------------------------------------------------------------------------- what users do


def test_two_jobs_run_at_once(job: Job) -> None:
    """Of the same name, in two namespaces."""
    other = Job(job.cluster, job.cluster.namespace("another"), replicas=1).apply()
    job.worker["replicas"] = 2
    job.apply()
    job.trains(2)
    other.trains(1)
    for each in (job, other):
        each.finish()
        each.until(lambda each=each: each.phase == "Succeeded")


def test_a_job_of_one_node_grows(job: Job) -> None:
    job.worker["replicas"] = 1
    job.apply()
    job.trains(1)
    before = job.generation
    scaled = job.cluster.server.kubectl("scale", "ej", job.name, "-n", job.namespace, "--replicas", "2")
    assert scaled.returncode == 0, scaled.stderr
    job.trains(2, after=before)


def test_a_job_is_suspended_and_resumed(job: Job) -> None:
    job.apply()
    job.trains(2)
    job.patch({"suspend": True})
    job.until(lambda: job.phase == "Suspended" and not job.live() and not job.live("dlrover-master"))
    before = job.generation
    job.patch({"suspend": False})
    job.trains(2, after=before)
    job.until(lambda: job.phase == "Running")


# ------------------------------------------------------------------- one training that lives through all of this


@pytest.fixture(scope="module")
def training(elastic: tuple[Cluster, Operators]) -> Job:
    """Each test of it leaves it training."""
    cluster, _ = elastic
    return Job(cluster, cluster.namespace("training"), training=TRAINING).apply()


def test_training_begins(training: Job) -> None:
    pods = training.trains(2)
    assert pods == {"words-edljob-worker-0", "words-edljob-worker-1"}
    training.until(lambda: training.status["status"]["replicaStatuses"]["worker"]["active"] == 2)
    assert training.phase == "Running"
    training.trains_on()


def test_a_worker_that_is_killed_starts_again_in_its_pod(training: Job) -> None:
    before, pods = training.generation, training.world
    training.kill_worker(sorted(pods)[1])
    assert training.trains(2, after=before) == pods
    assert all(int(line[4]) > 0 for line in training.starts[-2:]), "steps were lost"
    training.trains_on()


def test_a_pod_that_is_killed_is_replaced(training: Job) -> None:
    before, gone = training.generation, sorted(training.world)[1]
    training.kill_pod(gone)
    pods = training.trains(2, after=before)
    assert gone not in pods
    training.trains_on()


def test_a_machine_that_vanishes_is_noticed_and_replaced(training: Job) -> None:
    """Its pods are "Running" for the API server all the time. The master's is on another one."""
    before = training.generation
    masters = training.live("dlrover-master")[training.master]["spec"]["nodeName"]
    gone = next(pod for pod in training.world if training.machine(pod) != masters)
    machine = training.machine(gone)
    training.cluster.lose(machine)
    pods = training.trains(2, after=before, within=90)
    assert gone not in pods and machine not in map(training.machine, pods)
    training.cluster.repair(machine)
    training.trains_on()


def test_a_machine_that_vanishes_with_the_master_and_a_node_is_replaced(training: Job) -> None:
    """The node that is left ends its workers, and waits for the next master: its pod stays."""
    cluster, before, world = training.cluster, training.generation, training.world
    machines = {training.live("dlrover-master")[training.master]["spec"]["nodeName"]}
    if not machines & set(map(training.machine, world)):
        machines.add(training.machine(sorted(world)[1]))
    left = {pod for pod in world if training.machine(pod) not in machines}
    for machine in machines:
        cluster.lose(machine)
    time.sleep(GIVEN_UP_AFTER)
    for machine in machines:
        cluster.declare_lost(machine)
    assert left <= training.trains(2, after=before, within=120)
    for machine in machines:
        cluster.repair(machine)
    training.trains_on()


@pytest.mark.parametrize("how", ["killed", "deleted"])
def test_training_goes_on_without_its_masters_pod(training: Job, how: str) -> None:
    started, gone = training.starts, training.master
    if how == "killed":
        training.kill_pod(gone)
    else:
        deleted = training.cluster.server.kubectl("delete", "pod", gone, "-n", training.namespace, "--wait=false")
        assert deleted.returncode == 0, deleted.stderr
    training.trains_on()
    training.until(lambda: training.live("dlrover-master").keys() - {gone})
    said = lambda: training.cluster.said(training.namespace, training.master)
    training.until(lambda: "all workers run (they were started already)" in said())
    assert training.starts == started


def test_another_operator_leads_when_the_first_is_gone(training: Job, elastic: tuple[Cluster, Operators]) -> None:
    _, operators = elastic
    gone = operators.leader
    operators.kill(gone)
    training.until(lambda: operators.leader != gone, within=LEASE_LASTS + 20)
    training.trains_on()


def test_training_goes_on_without_the_api_server(training: Job) -> None:
    """Meanwhile the same nodes start again after a failure; a node is replaced when the server is back: the master's journal is there."""
    cluster, before, pods = training.cluster, training.generation, training.world
    gone = sorted(pods)[1]
    cluster.server.pause()
    try:
        ends = time.monotonic() + AWAY
        while time.monotonic() < ends:
            training.trains_on(100)
        training.kill_worker(sorted(pods)[0])
        training.until(lambda: training.generation > before and training.world == pods)
        training.trains_on(100)
        before = training.generation
        training.kill_pod(gone)
        time.sleep(LOSS_IS_NOTICED)
        assert training.generation == before
    finally:
        cluster.server.resume()
    assert gone not in training.trains(2, after=before)


def test_it_is_scaled_out(training: Job) -> None:
    before = training.generation
    training.patch({"replicaSpecs": {"worker": {"replicas": 3}}})
    training.trains(3, after=before)
    training.trains_on()


def test_it_is_scaled_by_a_plan(training: Job) -> None:
    before = training.generation
    training.cluster.apply({
        "apiVersion": "elastic.iml.github.io/v1alpha1", "kind": "ScalePlan",
        "metadata": {"name": "fewer", "namespace": training.namespace, "labels": {"scale-type": "manual"}},
        "spec": {"ownerJob": training.name, "replicaResourceSpecs": {"worker": {"replicas": 2}}},
    })  # fmt: skip
    training.trains(2, after=before)
    training.until(lambda: len(training.live()) == 2)
    training.trains_on()


def test_a_machine_is_drained(training: Job) -> None:
    # By this its budget counts, and a plan has made it smaller: no pod might go.
    training.patch({"replicaSpecs": {"worker": {"replicas": 2}}})
    before, gone = training.generation, sorted(training.world)[0]
    machine = training.machine(gone)
    drain = ("drain", machine, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    drained = training.cluster.server.kubectl(*drain)
    assert drained.returncode == 0, drained.stderr + training.told()
    pods = training.trains(2, after=before)
    assert machine not in map(training.machine, pods)
    training.cluster.server.kubectl("uncordon", machine)
    training.trains_on()


def test_a_machine_whose_hardware_is_broken_is_marked_and_left(training: Job) -> None:
    before, gone = training.generation, sorted(training.world)[1]
    machine = training.machine(gone)
    (training.place / "broken").write_text(training.live()[gone]["status"]["hostIP"])
    pods = training.trains(2, after=before)
    assert machine not in map(training.machine, pods)
    node = training.cluster.server.get(f"/api/v1/nodes/{machine}").body
    assert {"key": "troupe/faulty", "value": training.name, "effect": "NoSchedule"} in node["spec"]["taints"]
    training.trains_on()


def test_it_succeeds(training: Job) -> None:
    training.finish()
    training.until(lambda: training.phase == "Succeeded")
    training.until(lambda: not training.live() and not training.live("dlrover-master"))


def test_nothing_is_left_of_a_job_that_is_deleted(training: Job) -> None:
    cluster = training.cluster
    deleted = cluster.server.kubectl("delete", "ej", training.name, "-n", training.namespace)
    assert deleted.returncode == 0, deleted.stderr

    plan = {"ScalePlan fewer"}  # a user's
    left = lambda: set(all_objects(cluster.server, training.namespace)) - training.before - plan
    cluster.until(lambda: not left(), lambda: str(left()))
    bindings = cluster.server.kubectl("get", "clusterrolebindings", "-o", "name").stdout
    assert f"{training.namespace}-{training.name}" not in bindings
    keys = [key for key in cluster.machines.running if key.startswith(f"{training.namespace}.")]
    assert keys and not any(cluster.machines.processes(key) for key in keys)
