"""Ranks by the network: files of --topology, what nodes say of themselves, and what is left for scripts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import CALM
from launchers import Launcher, Run, base_environment, free_port, until
from own_master import OwnMaster

WITHIN = 60.0
RACKS = {"a": "x", "b": "y", "c": "x", "d": "y"}
LINES = "".join(f"{rack} hall {node}\n" for node, rack in RACKS.items())
GUIDE = "".join(f"asw-{n % 4} psw-0 192.168.0.{n}\n" for n in range(10))
WORKER = """
echo "rank $GROUP_RANK is $WHERE"
echo "for scripts: ${RANK_AFTER_ACC-none} ${MASTER_INDEX-none}"
"""

Nodes = Callable[..., dict[str, Run]]


@pytest.fixture
def nodes(launcher: Launcher, tmp_path: Path) -> Nodes:
    """Starts the four nodes, without ranks, each with these options, its own, and what its pod is told."""
    script = tmp_path / "worker.sh"
    script.write_text(f"#!/bin/sh\n{WORKER}\n")
    script.chmod(0o755)
    started: dict[str, Run] = {}

    class Node(Launcher):
        def command(self, worker: list[str], **how: object) -> list[str]:
            return [self.program, "--no-python", *how["options"], *worker]

    def start(
        *options: str,
        own: Callable[[str], list[str]] = lambda _: [],
        told: Callable[[str], dict[str, str]] = lambda _: {},
    ) -> dict[str, Run]:
        where = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        for name in RACKS:
            directory = tmp_path / f"node-{name}"
            directory.mkdir()
            run = Run(
                Node(launcher.name, launcher.program),
                [str(script)],
                directory,
                options=["--nnodes=4", f"--node-name={name}", where, *options, *own(name)],
                environment=CALM | {"WHERE": name} | told(name),
            )
            started[name] = run.__enter__()
        return started

    yield start
    for run in started.values():
        run.__exit__()


def order(runs: dict[str, Run]) -> list[str]:
    """Which node has which rank, once all have trained."""
    for run in runs.values():
        assert run.wait(WITHIN) == [0], run.err()
    said = [line.split() for run in runs.values() for line in run.out().splitlines()]
    by_rank = {int(words[1]): words[3] for words in said if words[0] == "rank"}
    assert sorted(by_rank) == [0, 1, 2, 3]
    return [by_rank[rank] for rank in range(4)]


def follows_racks(names: list[str]) -> bool:
    racks = [RACKS[name] for name in names]
    return racks in (["x", "x", "y", "y"], ["y", "y", "x", "x"])


def all_said(runs: dict[str, Run]) -> str:
    return "\n".join(run.err() for run in runs.values())


def test_ranks_follow_the_file(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(LINES)
    runs = nodes(f"--topology={tmp_path}/racks")
    assert follows_racks(order(runs)), all_said(runs)
    assert "ranks follow the network: of 4 nodes the ring leaves a switch" in all_said(runs)


def test_pods_are_known_by_the_machines_below_them(nodes: Nodes, tmp_path: Path) -> None:
    machines = {name: f"192.168.0.{n}" for n, name in enumerate(RACKS)}
    (tmp_path / "racks").write_text("".join(f"{RACKS[name]} hall {machine}\n" for name, machine in machines.items()))
    runs = nodes(f"--topology={tmp_path}/racks", told=lambda name: {"NODE_IP": machines[name]})
    by_rank = order(runs)
    assert follows_racks(by_rank), all_said(runs)
    listed = ", ".join(f"{name} (127.0.0.1 on {machines[name]})" for name in by_rank)
    assert f"nodes of rank 0 to 3: {listed}" in all_said(runs)


def test_ranks_follow_what_nodes_say(nodes: Nodes) -> None:
    runs = nodes(own=lambda name: [f"--switches=hall/{RACKS[name]}"])
    assert follows_racks(order(runs)), all_said(runs)


def test_a_malformed_file_costs_a_warning_and_no_job(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text("x hall a\ny b\n")
    runs = nodes(f"--topology={tmp_path}/racks")
    assert sorted(order(runs)) == list(RACKS)
    why = "line 2: expected three words, 'asw psw ip', found 2"
    assert f"ranks do not follow the network (--topology {tmp_path}/racks): " in all_said(runs)
    assert why in all_said(runs)


def test_a_rank_table_is_waited_for_until_it_is_complete(nodes: Nodes, tmp_path: Path) -> None:
    table = tmp_path / "jobstart_hccl.json"
    table.write_text('{"version": "1.2", "status": "initializing"}')
    runs = nodes(f"--topology={table}")
    until(
        lambda: "the rank table is not completed; the first start waits for it" in all_said(runs),
        WITHIN,
        "the table is waited for",
    )
    servers = [
        {
            "server_id": name,
            "device": [
                {
                    "device_id": "0",
                    "device_ip": f"10.0.0.{n}",
                    "rank_id": str(n),
                    "super_device_id": str(n),
                }
            ],
        }
        for n, name in enumerate(RACKS)
    ]
    pods = [
        {
            "super_pod_id": rack,
            "server_list": [{"server_id": name} for name in RACKS if RACKS[name] == rack],
        }
        for rack in ("x", "y")
    ]
    whole = {
        "version": "1.2",
        "status": "completed",
        "server_count": "4",
        "server_list": servers,
        "super_pod_list": pods,
    }
    fresh = tmp_path / "fresh"
    fresh.write_text(json.dumps(whole))
    fresh.rename(table)
    assert follows_racks(order(runs)), all_said(runs)


def test_a_file_that_never_comes_ends_the_wait_and_no_job(nodes: Nodes, tmp_path: Path) -> None:
    runs = nodes(f"--topology={tmp_path}/none", "--topology-wait=1")
    assert sorted(order(runs)) == list(RACKS)
    assert "there is no such file (after 1.0 s)" in all_said(runs)


def test_what_scripts_find(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(LINES)
    runs = nodes(
        f"--topology={tmp_path}/racks", own=lambda name: [f"--rank-files={tmp_path}/files-{name}"]
    )
    for rank, name in enumerate(order(runs)):
        assert f"for scripts: {rank} 0" in runs[name].out()
        assert (tmp_path / f"files-{name}" / "RANK_AFTER_ACC").read_text() == f"{rank}\n"
        assert (tmp_path / f"files-{name}" / "MASTER_INDEX").read_text() == "0\n"


def printed(launcher: Launcher, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launcher.program, "--print-ranks", *map(str, arguments)],
        env=base_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )


def test_the_guide_s_ten_nodes_printed(launcher: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "topology_config"
    file.write_text(GUIDE)
    table = printed(launcher, "--topology", file)
    assert table.returncode == 0, table.stderr
    lines = [line.split() for line in table.stdout.splitlines()]
    assert lines[0] == ["rank", "node", "switches"]
    assert [line[1] for line in lines[1:11]] == [
        f"192.168.0.{n}" for n in (0, 4, 8, 1, 5, 9, 2, 6, 3, 7)
    ]
    assert ["2", "ring", "10", "4", "4"] in lines

    said = json.loads(printed(launcher, "--topology", file, "json").stdout)
    assert said["ranks"][1] == {"rank": 1, "node": "192.168.0.4", "switches": ["psw-0", "asw-0"]}
    assert said["levels"][1]["ring"] == {"before": 10, "after": 4, "optimum": 4}

    first = json.loads(printed(launcher, "--topology", file, "--nnodes=4", "json").stdout)
    assert [each["node"] for each in first["ranks"]] == [f"192.168.0.{n}" for n in range(4)]
    units = json.loads(printed(launcher, "--topology", file, "--node_unit=2", "json").stdout)
    assert units["levels"][1]["split_groups"]["after"] == units["levels"][1]["split_groups"]["optimum"]


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        ("a b\n", [], "line 1: expected three words"),
        (None, [], "there is no such file"),
        (GUIDE, ["--nnodes=11"], "it has 10 nodes, and 11 are wanted"),
        (GUIDE, ["--node_unit=3"], "3"),
        (GUIDE, ["train.py"], "'train.py' is not json; no script is run"),
        (GUIDE, ["--topology-labels=a,,b"], "has an empty key"),
        ('{"kind": "List", "items": [{"kind": "Node"}]}', [], "--topology-labels"),
    ],
    ids=["malformed", "missing", "too few", "units", "a script", "labels", "no labels"],
)
def test_what_cannot_be_printed_is_one_line_and_exits_2(
    launcher: Launcher, tmp_path: Path, content: str | None, options: list[str], named: str
) -> None:
    file = tmp_path / "topology"
    if content is not None:
        file.write_text(content)
    done = printed(launcher, "--topology", file, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert named in line


# ---- A master of its own ----

# Each life waits to be told which node is to fail; none: all have trained.
LIVES = """
life=$(cat "$1/life")
echo "$GROUP_RANK" >"$1/$WHERE-$life.part" && mv "$1/$WHERE-$life.part" "$1/$WHERE-$life"
until [ -e "$1/fails-$life" ]; do sleep 0.02; done
case $(cat "$1/fails-$life") in
"$WHERE") exit 1 ;;
none) exit 0 ;;
*) exec sleep 600 ;;
esac
"""
OTHER_LINES = "".join(f"{rack} hall {node}\n" for node, rack in zip("abcd", "xxyy", strict=True))


@pytest.fixture
def own_master(launcher: Launcher, tmp_path: Path) -> Iterator[Callable[..., OwnMaster]]:
    """Of four nodes, which have come in the order of their names."""
    script = tmp_path / "worker.sh"
    script.write_text(f"#!/bin/sh\n{LIVES}\n")
    script.chmod(0o755)
    (tmp_path / "said").mkdir()
    made: list[OwnMaster] = []

    def start(*options: str) -> OwnMaster:
        (tmp_path / "life").write_text("1")
        made.append(OwnMaster(launcher, tmp_path / "said", 4, *options))
        for name in RACKS:
            made[0].start_node(name, ["--no-python", str(script), str(tmp_path)])
            made[0].until(lambda n=name: f"node {n} joined" in made[0].err(), f"node {name}")
        return made[0]

    yield start
    for master in made:
        master.close()


def by_rank(master: OwnMaster, place: Path, life: int) -> str:
    files = {name: place / f"{name}-{life}" for name in RACKS}
    master.until(lambda: all(f.exists() for f in files.values()), f"life {life}")
    return "".join(sorted(files, key=lambda name: int(files[name].read_text())))


def fails(place: Path, life: int, node: str) -> None:
    (place / "life").write_text(str(life + 1))
    (place / "which").write_text(node)
    (place / "which").rename(place / f"fails-{life}")


def replaced(file: Path, text: str) -> None:
    file.with_suffix(".part").write_text(text)
    file.with_suffix(".part").rename(file)


def test_a_master_of_its_own_has_the_file(
    own_master: Callable[..., OwnMaster], tmp_path: Path
) -> None:
    (tmp_path / "racks").write_text(LINES)
    master = own_master(f"--topology={tmp_path}/racks")
    assert by_rank(master, tmp_path, 1) == "acbd"
    assert f"{tmp_path}/racks is taken for" in master.err()
    assert "ranks follow the network: of 4 nodes the ring leaves a switch" in master.err()
    fails(tmp_path, 1, "none")
    master.end()


def test_a_file_that_changes_is_read_by_the_next_master(
    own_master: Callable[..., OwnMaster], tmp_path: Path
) -> None:
    (tmp_path / "racks").write_text(LINES)
    master = own_master(f"--topology={tmp_path}/racks")
    assert by_rank(master, tmp_path, 1) == "acbd"
    replaced(tmp_path / "racks", OTHER_LINES)
    fails(tmp_path, 1, "b")
    assert by_rank(master, tmp_path, 2) == "acbd"
    master.end_master()
    master.start_master()
    master.until(lambda: "racks is taken for" in master.err(), "the file is read")
    fails(tmp_path, 2, "c")
    assert by_rank(master, tmp_path, 3) == "abcd", master.err()
    replaced(tmp_path / "racks", "x hall a\ny b\n")
    master.end_master()
    master.start_master()
    master.until(lambda: "ranks do not follow the network" in master.err(), "the file is refused")
    fails(tmp_path, 3, "a")
    assert by_rank(master, tmp_path, 4) == "abcd", master.err()
    fails(tmp_path, 4, "none")
    master.end()
