"""Kubernetes' own collector removes all of a deleted job, in each of kubectl's ways."""

from __future__ import annotations

import pytest
from cluster import Cluster
from installed import Operators
from jobs import Job
from objects import JOB_UID, all_objects, of_job, owners_of

MASTER = "elasticjob-words-dlrover-master"
# Of a job of two nodes. What Kubernetes makes of them (endpoints, tokens) goes with them.
OWNED = {
    f"Pod {MASTER}-0",
    "Pod words-edljob-worker-0",
    "Pod words-edljob-worker-1",
    f"Service {MASTER}",
    f"ServiceAccount {MASTER}",
    f"Role {MASTER}",
    f"RoleBinding {MASTER}",
    "Secret elasticjob-words-token",
    "ConfigMap elasticjob-words-journal",
    "PodDisruptionBudget elasticjob-words",
}
# The collector hears of a new kind of owner within half a minute.
COLLECTED_WITHIN = 120.0


@pytest.fixture
def job(elastic: tuple[Cluster, Operators], request: pytest.FixtureRequest) -> Job:
    """In a namespace of its own, running on two nodes."""
    cluster, _ = elastic
    words = request.node.name.replace("test_", "").replace("_", "-").replace("[", "-")
    name = words.strip("]")[:60].strip("-")
    made = Job(cluster, cluster.namespace(name))
    # A namespace that goes looks again when half of it is over.
    made.worker["template"]["spec"]["terminationGracePeriodSeconds"] = 30
    made.apply()

    def remove() -> None:
        cluster.server.ask("DELETE", made.path, None)
        cluster.server.ask("DELETE", f"/api/v1/namespaces/{made.namespace}", None)

    request.addfinalizer(remove)
    made.trains(2)
    return made


def left(job: Job) -> set[str]:
    return set(all_objects(job.cluster.server, job.namespace)) - job.before


def is_collected(job: Job, uid: str) -> None:
    """Its namespace is as it was before the job, and no other place has anything of it."""
    job.cluster.until(lambda: not left(job), lambda: f"{left(job)}\n{job.told()}", COLLECTED_WITHIN)
    assert not of_job(job.cluster.server, uid)
    keys = [key for key in job.cluster.machines.running if key.startswith(f"{job.namespace}.")]
    assert keys and not any(job.cluster.machines.processes(key) for key in keys)


def test_all_that_is_made_for_a_job_is_its_own(job: Job) -> None:
    assert of_job(job.cluster.server, job.uid, job.namespace) == OWNED
    objects = all_objects(job.cluster.server, job.namespace)
    for name in OWNED:
        assert owners_of(objects[name]) == {job.uid}, name
    # The right to mark machines is in no namespace and has no owner: the operator removes it.
    everywhere = of_job(job.cluster.server, job.uid)
    elsewhere = [name for name in everywhere if f" {job.namespace}/" not in name]
    assert [name.split()[0] for name in elsewhere] == ["ClusterRoleBinding"]


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_all_of_a_deleted_job_is_collected(job: Job, cascade: str) -> None:
    uid = job.uid
    job.kubectl("delete", "ej", job.name, f"--cascade={cascade}")
    assert not job.uid
    if cascade == "foreground":  # kubectl has waited for the job, and the job for what it owns
        assert not {name for name in left(job) if name.startswith("Pod ")}
    is_collected(job, uid)


def test_all_of_a_job_that_has_succeeded_is_collected(job: Job) -> None:
    job.finish()
    job.until(lambda: job.phase == "Succeeded")
    uid = job.uid
    job.kubectl("delete", "ej", job.name)
    is_collected(job, uid)


def test_all_of_a_suspended_job_is_collected(job: Job) -> None:
    job.patch({"suspend": True})
    job.until(lambda: job.phase == "Suspended")
    uid = job.uid
    job.kubectl("delete", "ej", job.name)
    is_collected(job, uid)


def test_a_namespace_goes_with_its_jobs(job: Job) -> None:
    uid, server = job.uid, job.cluster.server
    assert server.ask("DELETE", f"/api/v1/namespaces/{job.namespace}", None).status == 200
    gone = lambda: server.get(f"/api/v1/namespaces/{job.namespace}").status == 404
    job.cluster.until(gone, job.told, COLLECTED_WITHIN)
    job.cluster.until(lambda: not of_job(server, uid), lambda: str(of_job(server, uid)))


def test_a_job_deleted_as_an_orphan_leaves_its_pods_training(job: Job) -> None:
    """Training ends by itself, no pod is replaced, and a person removes the rest."""
    uid, world, starts = job.uid, job.world, job.starts
    job.kubectl("delete", "ej", job.name, "--cascade=orphan")
    assert not job.uid
    said = lambda: job.cluster.said(job.namespace, f"{MASTER}-0")
    job.until(lambda: "no pod is made for it any more" in said())
    objects = all_objects(job.cluster.server, job.namespace)
    assert all(not owners_of(objects[name]) for name in OWNED)
    assert of_job(job.cluster.server, uid, job.namespace) == OWNED  # by the label
    gone = sorted(world)[1]
    job.kill_pod(gone)
    job.until(lambda: gone not in job.live())
    # The other node trains on, and says when it is done.
    job.until(lambda: job.world == set(world) - {gone})
    assert set(job.live()) == set(world) - {gone}
    job.finish()
    job.until(lambda: not job.live() and not job.live("dlrover-master"))
    assert {pod["metadata"]["name"] for pod in job.all("worker")} == set(world)
    assert len(job.starts) == len(starts) + 1
    # As docs/elastic-job.md says.
    kinds = "pods,services,serviceaccounts,roles,rolebindings,secrets,configmaps,pdb"
    job.kubectl("delete", kinds, "-l", f"{JOB_UID}={uid}")
    job.cluster.until(lambda: not left(job), lambda: str(left(job)), COLLECTED_WITHIN)
