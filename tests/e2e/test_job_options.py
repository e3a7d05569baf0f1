"""What the nodes' command lines say of the job is heard by a master that was told nothing of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from launchers import Launcher, until
from own_master import WITHIN, OwnMaster

TRAINS = ["--no-python", "sh", "-c", 'until [ -e "$0" ]; do sleep 0.05; done']


class Untold(OwnMaster):
    """A master that knows where to listen, and nodes that are told all the rest."""

    def start_master(self) -> None:
        self.lives += 1
        program = Path(self.launcher.program).with_name("actor-master")
        command = [str(program), "-v", f"--listen=127.0.0.1:{self.port}", f"--journal={self.directory}/journal"]
        self.log = self.directory / f"log-{self.lives}.json"
        command += [f"--json-log={self.log}", *self.options]
        self.process = self._started(command, f"master-{self.lives}", {})
        until(lambda: f":{self.port}" in self.err(), WITHIN, "a master that listens")

    def events(self, name: str) -> list[dict]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if line["event"] == name]

    def joins(self, name: str, *options: str) -> None:
        self.start_node(name, [*TRAINS, str(self.directory / "enough")], options=options)

    def finish(self) -> None:
        (self.directory / "enough").touch()
        self.end()


@pytest.fixture
def untold(launcher: Launcher, tmp_path: Path) -> Iterator[type]:
    masters: list[Untold] = []

    def start(nodes: int, *options: str) -> Untold:
        masters.append(Untold(launcher, tmp_path, nodes, *options))
        return masters[-1]

    yield start
    for master in masters:
        master.close()


def test_the_check_and_the_sizes_of_a_config_are_those_that_the_nodes_were_told(untold: type, tmp_path: Path) -> None:
    config = tmp_path / "ds.json"
    sizes = {"enabled": True, "max_train_batch_size": 8, "micro_batch_sizes": [2], "version": 0.1}
    config.write_text(json.dumps({"elasticity": sizes}))
    job = untold(2)
    said = ["--network-check", f"--elasticity-config={config}"]
    for node in ("a", "b"):
        job.joins(node, *said)
    job.until(lambda: job.events("job_options_taken"), "options that were taken")
    job.until(lambda: job.events("training_started"), "training")
    taken = job.events("job_options_taken")
    assert len(taken) == 1, job.all_said()
    assert "--network-check" in taken[0]["text"] and "--nnodes 2:2" in taken[0]["text"], taken
    assert job.events("check_over"), job.all_said()
    job.finish()


def test_the_next_master_goes_by_what_the_last_one_has_taken(untold: type) -> None:
    job = untold(2)
    for node in ("a", "b"):
        job.joins(node, "--hang-timeout=99")
    job.until(lambda: job.events("training_started"), "training")
    job.end_master()
    job.start_master()
    job.until(lambda: job.err("a").count("linked again") and job.err("b").count("linked again"), "both nodes")
    job.joins("c", "--hang-timeout=98")
    assert job.nodes.pop("c").wait(WITHIN) != 0
    refusal = "it was told --hang-timeout 98, and node a, the job's first, --hang-timeout 99: give all nodes the same"
    first = "b" if "node b, the job's first" in job.err("c") else "a"
    assert refusal.replace("node a", f"node {first}") in job.err("c"), job.all_said()
    assert refusal.replace("node a", f"node {first}") in job.err(), job.all_said()
    assert not job.events("job_options_taken"), job.all_said()
    job.finish()


def test_what_the_master_was_told_itself_counts_and_the_node_hears_it(untold: type) -> None:
    job = untold(1, "--hang-timeout=50")
    job.joins("a", "--hang-timeout=99")
    job.until(lambda: job.events("training_started"), "training")
    line = "--hang-timeout 99 counts for this node's own part alone: the job's master was told --hang-timeout 50"
    assert line in job.err("a"), job.all_said()
    assert "node a was told --hang-timeout 99, and this master --hang-timeout 50, which counts" in job.err(), job.all_said()
    job.finish()


def test_an_option_that_one_node_alone_was_told_is_refused_by_its_name(untold: type) -> None:
    job = untold(2)
    job.joins("a")
    job.until(lambda: "linked to the master" in job.err("a"), "the first node")
    job.joins("b", "--network-check")
    assert job.nodes.pop("b").wait(WITHIN) != 0
    assert "it was told --network-check, and node a, the job's first, was not: give all nodes the same" in job.err("b")
    job.joins("b")
    job.until(lambda: job.events("training_started"), "training")
    job.finish()


def test_a_word_that_all_nodes_correct_is_taken_by_the_same_master(untold: type) -> None:
    job = untold(2)
    job.joins("a", "--hang-timeout=99")
    job.until(lambda: "linked to the master" in job.err("a"), "the first node")
    job.nodes["a"].send_signal(signal.SIGINT)
    job.nodes.pop("a").wait(WITHIN)
    for node in ("a", "b"):
        job.joins(node, "--hang-timeout=98")
    job.until(lambda: job.events("training_started"), "training")
    assert [e["text"].count("--hang-timeout 9") for e in job.events("job_options_taken")] == [1, 1]
    job.finish()


def test_a_config_that_is_not_there_ends_the_node_that_names_it(untold: type) -> None:
    job = untold(2)
    job.joins("a", "--elasticity-config=/nowhere/ds.json")
    assert job.nodes.pop("a").wait(WITHIN) == 2
    assert "--elasticity-config /nowhere/ds.json: No such file or directory" in job.err("a")
