"""What --metrics-listen serves: read by Prometheus' own parser, compared with what happened."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import ROOT, Start
from launchers import Launcher, Run, base_environment, free_port, until

WITHIN = 60.0
PAGE = ROOT / "docs" / "metrics.md"
MONITORING = ROOT / "deploy" / "monitoring"

Samples = dict[tuple[str, str], float]

# Fails once, then waits to be told to end.
WORKER = """
echo x >> "$1/starts"
if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
  until [ -e "$1/fail" ]; do sleep 0.02; done
  if [ "$RANK" = 1 ]; then exit 7; fi
fi
until [ -e "$1/finish" ]; do sleep 0.02; done
"""


def read(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.read().decode()


def samples(text: str) -> Samples:
    """By name and by the one label that tells samples of a family apart."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            own = {name: value for name, value in sample.labels.items() if name not in ("job_id", "node")}
            found[sample.name, ",".join(f"{name}={value}" for name, value in own.items())] = sample.value
    return found


def now(port: int) -> Samples:
    return samples(read(port))


def starts(directory: Path) -> int:
    file = directory / "starts"
    return len(file.read_text().splitlines()) if file.exists() else 0


def begun(shell: Start, directory: Path, port: int) -> Run:
    run = shell(WORKER, directory, procs=2, restarts=1, options=[f"--metrics-listen=127.0.0.1:{port}"])
    until(lambda: starts(directory) == 2, WITHIN, f"the first start\n{run.err()}")
    until(lambda: now(port)["troupe_node_starts_total", ""] == 1, WITHIN, "the start is counted")
    return run


def test_a_failure_and_its_recovery_are_counted(shell: Start, tmp_path: Path) -> None:
    port = free_port()
    run = begun(shell, tmp_path, port)
    before = now(port)
    assert before["troupe_world_size", ""] == 2
    assert before["troupe_nodes", ""] == 1
    assert before["troupe_master_linked", ""] == 1
    assert before["troupe_generations_total", ""] == 1
    assert ("troupe_job_success", "") not in before
    (tmp_path / "fail").touch()
    until(lambda: now(port)["troupe_generations_total", ""] == 2, WITHIN, f"the second world\n{run.err()}")
    until(lambda: starts(tmp_path) == 4, WITHIN, f"the second start\n{run.err()}")
    recovered = ("troupe_recovery_seconds_count", "phase=running")
    until(lambda: now(port).get(recovered) == 1, WITHIN, "the recovery is counted")
    after = now(port)
    assert after["troupe_restarts_total", "class=software"] == 1
    assert after["troupe_node_worker_failures_total", ""] == 1
    assert 0 < after["troupe_recovery_seconds_sum", "phase=running"] < WITHIN
    states = {which: value for (name, which), value in after.items() if name == "troupe_time_seconds_total"}
    assert states["state=recovering"] >= after["troupe_recovery_seconds_sum", "phase=running"]
    assert all(after[key] >= before[key] for key in before if key[0].endswith("_total"))
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0], run.err()


def test_the_result_is_there_until_a_scraper_has_read_it(shell: Start, tmp_path: Path) -> None:
    port = free_port()
    run = begun(shell, tmp_path, port)
    (tmp_path / "fail").touch()
    until(lambda: starts(tmp_path) == 4, WITHIN, f"the second start\n{run.err()}")
    # A scraper whose interval is half a second, until it has read the result once.
    began = time.monotonic()
    while ("troupe_job_success", "") not in (last := now(port)):
        if time.monotonic() - began > 1.2:
            (tmp_path / "finish").touch()
        assert time.monotonic() - began < WITHIN, run.err()
        time.sleep(0.5)
    assert last["troupe_job_success", ""] == 1
    assert last["troupe_time_seconds_total", "state=recovering"] > 0
    assert run.wait(WITHIN) == [0], run.err()
    assert "the job's result can be read at /metrics for " in run.err()
    # The summary has the same account.
    (line,) = [line for line in run.err().splitlines() if "interruptions took " in line]
    recovering = float(re.search(r"[:;] ([\d.]+) (m?s) recovering", line)[1])
    unit = 1e-3 if " ms recovering" in line else 1
    assert recovering * unit == pytest.approx(last["troupe_time_seconds_total", "state=recovering"], rel=0.1)


def families(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))


def test_the_page_names_each_metric(shell: Start, tmp_path: Path) -> None:
    port = free_port()
    run = begun(shell, tmp_path, port)
    told = families(read(port))
    of_jobs, _, of_operators = PAGE.read_text().partition("## The operator's")
    page = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", of_jobs, re.MULTILINE))
    assert {name: page.get(name) for name in told} == told
    # Those that are told only after something has happened.
    later = page.keys() - told.keys()
    source = (ROOT / "metrics" / "job_metrics.cpp").read_text()
    assert all(f'"{name}"' in source for name in later), later
    named = set(re.findall(r"^\| `(\w+)` \|", of_operators, re.MULTILINE))
    sources = [(ROOT / "metrics" / f"{of}_metrics.cpp").read_text() for of in ("process", "operator")]
    assert named == set(re.findall(r'"(troupe_\w+)"', "".join(sources)))
    (tmp_path / "fail").touch()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0], run.err()


@pytest.mark.parametrize("file", ["troupe-rules.yml", "grafana-board.json"])
def test_board_and_alerts_ask_for_what_there_is(file: str) -> None:
    text = (MONITORING / file).read_text()
    if file.endswith(".json"):
        json.loads(text)
    page = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    asked = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\btroupe_\w+", text)}
    assert asked and asked <= page


def test_what_is_not_there_is_said(shell: Start, tmp_path: Path) -> None:
    port = free_port()
    run = begun(shell, tmp_path, port)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        read(port, "/")
    (tmp_path / "fail").touch()
    (tmp_path / "finish").touch()
    assert run.wait(WITHIN) == [0], run.err()


@pytest.mark.parametrize("program", ["actor-launcher", "actor-master"])
def test_a_port_that_is_taken_is_one_line(launcher: Launcher, program: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        more = ["--standalone", "--no-python", "true"] if program == "actor-launcher" else ["--listen=127.0.0.1:0"]
        done = subprocess.run(
            [Path(launcher.program).with_name(program), f"--metrics-listen={at}", *more],
            env=base_environment(),
            capture_output=True,
            text=True,
            timeout=WITHIN,
        )
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith(program)]
    assert "--metrics-listen" in line and at in line


def test_a_master_that_stands_alone_tells_of_the_job(launcher: Launcher, shell: Start, tmp_path: Path) -> None:
    port, meeting = free_port(), free_port()
    # Another process than the launcher's, so another port.
    master = subprocess.Popen(
        [
            Path(launcher.program).with_name("actor-master"),
            f"--listen=127.0.0.1:{meeting}",
            f"--metrics-listen={port}",
            "--rdzv-id=none",
        ],
        env=base_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "waiting for" in master.stderr.readline()
        run = shell("until [ -e \"$1/finish\" ]; do sleep 0.02; done", tmp_path, procs=2, port=meeting, ranked=False)
        until(lambda: now(port).get(("troupe_world_size", "")) == 2, WITHIN, f"the world\n{run.err()}")
        assert ("troupe_master_linked", "") not in now(port)
        (tmp_path / "finish").touch()
        assert run.wait(WITHIN) == [0], run.err()
        assert master.wait(WITHIN) == 0
    finally:
        master.kill()
        master.wait()
