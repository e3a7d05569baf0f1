"""A job is deleted and made again under its name, at several moments: the second one runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cluster import Cluster
from installed import Operators
from jobs import Job
from objects import JOB_UID, of_job

# The collector comes when it wants, and pods have their grace period.
WITHIN = 120.0


def is_just_created(job: Job) -> None:
    job.until(lambda: job.uid)


def has_a_master_that_waits(job: Job) -> None:
    waits = lambda: any(pod["status"]["phase"] == "Pending" for pod in job.all("dlrover-master"))
    job.until(lambda: waits() or job.all("worker"))  # it may wait for a moment only


def has_workers_that_run(job: Job) -> None:
    job.trains(2)
    job.until(lambda: job.phase == "Running")


def is_finishing(job: Job) -> None:
    job.trains(2)
    job.finish()
    job.until(lambda: len(job.live()) < 2)


def has_succeeded(job: Job) -> None:
    job.trains(2)
    job.finish()
    job.until(lambda: job.phase == "Succeeded")


MOMENTS = (
    is_just_created,
    has_a_master_that_waits,
    has_workers_that_run,
    is_finishing,
    has_succeeded,
)


def delete_and_apply(job: Job) -> None:
    job.kubectl("delete", "ej", job.name)
    job.kubectl("apply", "-f", "-", input=json.dumps(job.document))


def replace(job: Job) -> None:
    job.kubectl("replace", "--force", "-f", "-", input=json.dumps(job.document))


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", [delete_and_apply, replace])
def test_a_job_made_again_under_its_name_runs(
    elastic: tuple[Cluster, Operators], how: Callable[[Job], None], moment: Callable[[Job], None]
) -> None:
    cluster, _ = elastic
    name = f"{how.__name__}-{moment.__name__}".replace("_", "-")
    job = Job(cluster, cluster.namespace(name)).apply()
    moment(job)
    first = job.uid
    job.begin_anew()
    how(job)
    second = job.uid
    assert first and second and first != second
    job.until(lambda: job.runs(second), WITHIN)
    survivors = lambda: of_job(cluster.server, first)
    cluster.until(lambda: not survivors(), lambda: f"{survivors()}\n{job.told()}", WITHIN)
    assert job.runs(second), job.told()  # what the collector has removed was not the second job's
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)
    assert job.uid == second and not job.status.get("restarts"), job.told()
    assert cluster.server.ask("DELETE", job.path, None).status == 200


def test_a_job_made_again_beside_pods_left_as_orphans_runs(
    elastic: tuple[Cluster, Operators],
) -> None:
    """Its token is another: no node that was left joins it, though its service has the name."""
    cluster, _ = elastic
    job = Job(cluster, cluster.namespace("beside-orphans"), replicas=1).apply()
    [orphan] = job.trains(1)
    first = job.uid
    job.kubectl("delete", "ej", job.name, "--cascade=orphan")
    job.kubectl("apply", "-f", "-", input=json.dumps(job.document))
    second = job.uid
    assert second != first
    job.until(lambda: job.runs(second), WITHIN)
    [own] = [
        name for name, pod in job.live().items() if pod["metadata"]["labels"][JOB_UID] == second
    ]
    said = lambda: cluster.said(job.namespace, "elasticjob-words-dlrover-master-1")
    job.until(lambda: f"1 worker on node {own}-1" in said(), WITHIN)
    job.finish()
    job.until(lambda: job.phase == "Succeeded", WITHIN)
    assert f"node {orphan}-1" not in said(), job.told()
    job.kubectl("delete", "pods", "-l", f"{JOB_UID}={first}")
    assert cluster.server.ask("DELETE", job.path, None).status == 200
