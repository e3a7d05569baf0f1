"""A master keeps its journal in a ConfigMap of a real API server, with the rights that docs/kubernetes.md gives and no others."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubelet import ROOT
from server import STRANGER, Server, free_ports

WITHIN = 60.0
PAGE = ROOT / "docs/kubernetes.md"
# Each start of a worker is a line; one fails when it is told to, and all end when they are told to.
WORKER = """#!/bin/sh
echo "$$ $TORCHELASTIC_RESTART_COUNT" >>"started-$GROUP_RANK"
until [ -e finish ]; do
  if [ -e "fail-$GROUP_RANK" ]; then rm "fail-$GROUP_RANK"; exit 1; fi
  sleep 0.02
done
"""


def rights() -> str:
    """What the page tells an administrator to apply."""
    section = PAGE.read_text().partition("\n## The journal without a volume\n")[2].partition("\n## ")[0]
    [manifest] = re.findall(r"^```yaml\n(.*?)^```$", section, re.M | re.S)
    return manifest


def account(server: Server, directory: Path, token: str = "") -> Path:
    """What a pod finds of its account: of the page's, or with another token."""
    applied = server.kubectl("apply", "-f", "-", input=rights())
    assert applied.returncode == 0, applied.stderr
    asked = server.ask("POST", "/api/v1/namespaces/default/serviceaccounts/troupe-master/token", {"spec": {}})
    assert asked.status == 201, asked.body
    made = directory / "account"
    made.mkdir(exist_ok=True)
    (made / "token").write_text(token or asked.body["status"]["token"])
    (made / "namespace").write_text("default")
    (made / "ca.crt").write_bytes((server.directory / "certificates" / "apiserver.crt").read_bytes())
    return made


class Job:
    def __init__(self, programs: Path, server: Server, directory: Path) -> None:
        self.programs, self.server, self.directory = programs, server, directory
        self.account = account(server, directory)
        self.journal = f"words-{time.monotonic_ns()}"
        [self.port] = free_ports(1)
        self.processes: list[subprocess.Popen] = []
        self.worker = directory / "worker.sh"
        self.worker.write_text(WORKER)
        self.worker.chmod(0o755)

    def start(self, name: str, program: str, *arguments: object) -> subprocess.Popen:
        environment = os.environ | {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": self.server.url.rpartition(":")[2],
            "ELASTIC_JOB_NAME": "words",
        }
        with (self.directory / f"{name}.err").open("wb") as err:
            line = [self.programs / program, *map(str, arguments)]
            started = subprocess.Popen(line, cwd=self.directory, env=environment, stderr=err, stdout=err)
        self.processes.append(started)
        return started

    def master(self, name: str, port: int = 0) -> subprocess.Popen:
        started = self.start(
            *(name, "actor-master", f"--listen=127.0.0.1:{port or self.port}", "--nnodes=2", "--max-restarts=3"),
            *("--rdzv-id=words", f"--journal=configmap:{self.journal}", f"--service-account={self.account}"),
        )  # fmt: skip
        self.until(lambda: "waiting for 2 node(s)" in self.said(name), f"{name} listens", started)
        return started

    def nodes(self) -> list[subprocess.Popen]:
        endpoint = f"--rdzv-endpoint=127.0.0.1:{self.port}"
        line = ("actor-launcher", "--nnodes=2", endpoint, "--rdzv-id=words", "--no-python", self.worker)
        return [self.start(f"node-{n}", *line) for n in range(2)]

    def said(self, name: str) -> str:
        return (self.directory / f"{name}.err").read_text()

    def starts(self) -> list[list[str]]:
        """Of each rank, its starts: `PID RESTARTS`."""
        files = [self.directory / f"started-{rank}" for rank in range(2)]
        return [file.read_text().splitlines() if file.exists() else [] for file in files]

    def restarted(self, times: int) -> Callable[[], bool]:
        wanted = [str(n) for n in range(times + 1)]
        return lambda: [[start.split()[1] for start in rank] for rank in self.starts()] == [wanted, wanted]

    def fail(self) -> None:
        (self.directory / "fail-1").touch()

    def finish(self, *processes: subprocess.Popen) -> None:
        (self.directory / "finish").touch()
        for process in processes:
            assert process.wait(WITHIN) == 0, self.everything()

    def everything(self) -> str:
        return "\n".join(f"{file.name}:\n{file.read_text()}" for file in sorted(self.directory.glob("*.err")))

    def until(self, condition: Callable[[], bool], what: str, *alive: subprocess.Popen) -> None:
        ends = time.monotonic() + WITHIN
        while not condition():
            assert time.monotonic() < ends, f"not within {WITHIN} s: {what}\n{self.everything()}"
            assert all(p.poll() is None for p in alive), f"ended before: {what}\n{self.everything()}"
            time.sleep(0.02)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def job(launcher: Path, server: Server, tmp_path: Path) -> Iterator[Job]:
    made = Job(launcher.parent, server, tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_master_that_was_killed_comes_back_with_training_untouched(job: Job, server: Server) -> None:
    first = job.master("first")
    nodes = job.nodes()
    job.until(job.restarted(0), "both ranks run", first, *nodes)
    job.fail()
    job.until(job.restarted(1), "both ranks run again", first, *nodes)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = job.starts()

    second = job.master("second")
    assert f"journal 'configmap:{job.journal}': an earlier master has left it; going on with its job" in job.said("second")
    both_are_back = lambda: "all workers run (they were started already)" in job.said("second")
    job.until(both_are_back, "both nodes have found it", second, *nodes)
    assert job.starts() == before
    for rank in before:
        os.kill(int(rank[-1].split()[0]), 0)
    job.fail()
    job.until(job.restarted(2), "the second restart is counted as the second", second, *nodes)
    job.finish(second, *nodes)

    kept = server.get(f"/api/v1/namespaces/default/configmaps/{job.journal}").body
    assert kept["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "troupe", "elasticjob.dlrover/name": "words"}
    assert kept["data"]["job"] == "words"


def test_a_second_master_takes_it_from_the_first_which_ends(job: Job) -> None:
    first = job.master("first")
    nodes = job.nodes()
    job.until(job.restarted(0), "both ranks run", first, *nodes)
    [elsewhere] = free_ports(1)
    job.master("second", elsewhere)
    # The first has nothing to record until then.
    job.fail()
    assert first.wait(WITHIN) == 1
    told = f"journal 'configmap:{job.journal}' is lost to this master: another master has taken it up"
    assert told in job.said("first").splitlines()[-1], job.said("first")
    assert job.said("first").count(told) == 1, job.said("first")

    third = job.master("third")
    run_again = lambda: [len(rank) for rank in job.starts()] == [2, 2]
    job.until(run_again, "the newest has restarted the workers", third, *nodes)
    job.finish(third, *nodes)


def test_a_right_that_lacks_is_named(job: Job, server: Server) -> None:
    job.account = account(server, job.directory, STRANGER)
    with pytest.raises(AssertionError, match="ended before"):
        job.master("first")
    said = job.said("first")
    assert 'User "stranger" cannot get resource "configmaps" in API group "" in the namespace "default"' in said
    assert "a Role of this pod's service account must allow `get`" in said
    assert len(said.strip().splitlines()) == 1, said


def test_what_is_no_journal_is_not_changed(job: Job, server: Server) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    made = server.ask("POST", maps, {"metadata": {"name": job.journal}, "data": {"topology": "x"}})
    assert made.status == 201
    with pytest.raises(AssertionError, match="ended before"):
        job.master("first")
    assert "the ConfigMap is not a journal of Troupe" in job.said("first")
    assert server.get(f"{maps}/{job.journal}").body == made.body
