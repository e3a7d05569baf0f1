"""What the library must not do to a program, and what it does when things go wrong."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import read_metrics, value_of


def until(holds, what):
    last = time.monotonic() + 30
    while time.monotonic() < last:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError(f"not within 30 s: {what}")


def test_nothing_is_recorded_while_a_graph_is(run):
    ended = run("capture")
    assert ended.told == {"records_in_capture": 0, "strict_threads": 0, "wrong_context": 0}
    assert ended.value("troupe_trace_untimed_total", reason="capturing") == 21


def test_errors_are_the_programs_own(run):
    ended = run("errors")
    assert ended.told == {
        **{"launched": 9, "peeked": 9, "got": 9, "again": 0},
        **{"reduced": 3, "grouped": 5, "background": 7},
        # An event of the library's failed: neither the call nor the last error tell of it.
        **{"first": 0, "after": 0},
    }
    assert ended.value("troupe_trace_failed_calls_total", **{"class": "launch"}) == 1
    assert ended.value("troupe_trace_failed_calls_total", **{"class": "collective"}) == 2
    assert ended.value("troupe_trace_untimed_total", reason="event_failed") == 1
    assert ended.value("troupe_trace_untimed_total", reason="not_enqueued") == 1
    assert ended.value("troupe_trace_pool_pairs_used") == 1  # all others are back
    assert ended.value("troupe_trace_queue_depth") == 0


def test_an_empty_pool_makes_no_call_wait(run):
    ended = run("pool")
    assert ended.told["events"] == 2 * 4096
    assert ended.value("troupe_trace_untimed_total", reason="pool_empty") > 20_000
    calls = ended.value("troupe_trace_calls_total", **{"class": "launch"})
    assert calls == ended.told["launches"]
    assert ended.value("troupe_trace_pool_pairs_used") == 1  # the anchor of the time axis


def test_calls_of_many_threads(run):
    ended = run("threads")
    assert ended.told == {"launches": 160_000, "wrong_context": 0}
    assert ended.value("troupe_trace_calls_total", **{"class": "collective"}) == 80_000


def test_a_million_calls_need_no_more_memory(run):
    ended = run("million")
    assert ended.value("troupe_trace_calls_total", **{"class": "launch"}) > 1_000_000
    assert ended.told["grown_kib"] < 4096


def test_hang(start, tmp_path):
    process = start("hang", XPU_TIMER_HANG_TIMEOUT="0.3", XPU_TIMER_PROMETHEUS_UPDATE_INTERVAL="0.05")

    def hung():
        prom = list(tmp_path.glob("*.prom"))
        return prom and value_of(read_metrics(tmp_path), "troupe_trace_hang") == 1

    until(hung, "the gauge of the hang")
    assert value_of(read_metrics(tmp_path), "troupe_trace_longest_wait_seconds") >= 0.3
    timeline = json.loads(
        until(lambda: list(tmp_path.glob("*.hang.json")), "the timeline of the hang")[0].read_text()
    )
    (stuck,) = [e for e in timeline["traceEvents"] if e.get("args", {}).get("finished") is False]
    assert (stuck["name"], stuck["args"]["sequence"]) == ("all_reduce", 2)
    (tmp_path / "seen").touch()
    until(lambda: not hung(), "the end of the hang")
    assert value_of(read_metrics(tmp_path), "troupe_trace_hangs_total") == 1
    (tmp_path / "seen-again").touch()
    until(hung, "the gauge of the second hang")
    (tmp_path / "done").touch()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    first, second = errors.splitlines()
    assert "rank 3: the device stands still: all_reduce #2 of communicator nccl-" in first
    assert "(8 ranks, 4096 bytes) was launched 0." in first and first.endswith("is not over")
    assert "still: a launch was launched" in second
    assert second.endswith("has not begun: what was launched before it is not over")


def test_a_forked_child_is_left_alone(run):
    ended = run("forked")
    assert ended.told == {"child": 0}
    assert ended.value("troupe_trace_calls_total", **{"class": "collective"}) == 10


def test_the_page_of_progress(run, fakes):
    told = run("progress", FAKE_WORKER=str(fakes / "libtroupe_worker.so")).told
    assert told["feeds"] == 64
    assert told["name"].startswith("nccl-") and told["second"].startswith("nccl-")
    assert told["name"] != told["second"]
    # As many as the job's ranks: they are known by number.
    assert told["members"] == 8
    assert told["entered"] - told["left"] == 1
    assert (told["kind"], told["bytes"]) == (2, 400)


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_port(start, tmp_path):
    port = free_port() - 2
    process = start("served", TROUPE_TRACE_PORT=str(port), LOCAL_RANK="2")
    at = f"http://127.0.0.1:{port + 2}"

    def answered():
        try:
            return urllib.request.urlopen(at + "/metrics", timeout=5)
        except urllib.error.URLError:
            return None

    answer = until(answered, "an answer")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.read().decode()
    assert 'troupe_trace_hang{job_name="",rank="3",local_rank="2"} 0\n' in text
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(at + "/", timeout=5)
    import socket

    # A client that says nothing, and one that says too much, hold the others for a second at most.
    silent = socket.create_connection(("127.0.0.1", port + 2))
    loud = socket.create_connection(("127.0.0.1", port + 2))
    try:
        loud.sendall(b"GET /" + b"x" * 65536)
    except OSError:
        pass
    assert until(answered, "an answer beside others")
    silent.close()
    loud.close()
    (tmp_path / "done").touch()
    assert process.wait(60) == 0


def test_what_cannot_be_used_is_told(run):
    ended = run(
        "split",
        XPU_TIMER_HANG_TIMEOUT="soon",
        XPU_TIMER_HANG_KILL="1",
        XPU_TIMER_TP_SIZE="4",
        TROUPE_TRACE_GEMM_EVERY="-1",
    )
    lines = ended.errors.splitlines()
    assert len(lines) == 3
    assert any("XPU_TIMER_HANG_TIMEOUT=soon: is no number of seconds" in line for line in lines)
    assert any("TROUPE_TRACE_GEMM_EVERY=-1: is no whole number" in line for line in lines)
    assert any(line.endswith("without effect: XPU_TIMER_HANG_KILL XPU_TIMER_TP_SIZE") for line in lines)


def test_unsupported_variables_are_told_once_on_each_node(run):
    assert run("split", XPU_TIMER_HANG_KILL="1", LOCAL_RANK="1").errors == ""


def test_a_directory_that_cannot_be_used(run, tmp_path):
    (tmp_path / "file").touch()
    ended = run("split", TROUPE_TRACE_DIR=str(tmp_path / "file"))
    assert "cannot be written to TROUPE_TRACE_DIR" in ended.errors
    assert "no timeline on request" in ended.errors
    assert "file cannot be made: Not a directory" in ended.errors


def test_a_driver_that_is_stuck_does_not_hold_the_end(run):
    run("stuck")


def test_off(run, tmp_path):
    assert run("untraced", TROUPE_TRACE="0").told == {"threads": 1, "events": 0}
    assert not list(tmp_path.iterdir())


def test_a_program_without_cuda_has_nothing_of_it(library):
    """No thread, no file, no library beside libc."""
    script = "grep -c . /proc/self/task/*/comm | wc -l; cat /proc/$$/maps"
    output = subprocess.run(
        ["/bin/sh", "-c", script], env={"LD_PRELOAD": str(library), "TROUPE_TRACE_DIR": "/nonexistent"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert output.stderr == ""
    assert output.stdout.splitlines()[0] == "1"
    assert str(library) in output.stdout
    assert "libstdc++" not in output.stdout
    assert os.path.exists(library)
