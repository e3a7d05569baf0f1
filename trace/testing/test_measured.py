"""What the library measures of calls whose durations are known exactly."""

import json

import pytest

MIB = 1 << 20
WARM_UP = 5
CALLS = 20
TIMED = CALLS - WARM_UP

# operation, bytes, microseconds, element type, and what nccl-tests multiplies with for 8 ranks
COLLECTIVES = [
    ("all_reduce", MIB, 1000, "float32", 2 * 7 / 8, TIMED),
    ("all_gather", MIB, 500, "float16", 7 / 8, TIMED),
    ("reduce_scatter", MIB, 500, "float16", 7 / 8, TIMED),
    ("broadcast", 1024, 500, "float16", 1, 2 * CALLS - WARM_UP),  # also as ncclBcast
    ("reduce", 1024, 500, "float16", 1, TIMED),
    ("send", 1024, 500, "float16", 1, TIMED),
    ("recv", 1024, 500, "float16", 1, TIMED),
]


def test_collectives(run):
    ended = run("collectives")
    for operation, size, us, dtype, factor, timed in COLLECTIVES:
        labels = {"operation": operation, "members": "8", "dtype": dtype, "bytes_max": str(size)}
        name = "troupe_collective_latency_seconds"
        assert ended.value(name + "_count", **labels) == timed
        assert ended.value(name + "_sum", **labels) == pytest.approx(timed * us / 1e6, rel=1e-4)
        for quantile in ("0", "0.99", "1"):
            measured = ended.value(name, quantile=quantile, **labels)
            assert measured == pytest.approx(us / 1e6, rel=1e-4)
        assert ended.value("troupe_collective_bytes_total", **labels) == timed * size
        bandwidth = ended.value("troupe_collective_bus_bandwidth_bytes_per_second", **labels)
        assert bandwidth == pytest.approx(size / (us / 1e6) * factor, rel=1e-3)
    assert ended.value("troupe_trace_calls_total", **{"class": "collective"}) == 8 * CALLS
    assert ended.value("troupe_trace_queue_depth") == 0
    assert ended.errors == ""


def test_a_group_is_one_operation(run):
    ended = run("groups")
    name = "troupe_collective_latency_seconds_count"
    three = {"operation": "all_reduce", "bytes_max": str(4 * MIB)}  # 3 MiB
    assert ended.value(name, **three) == TIMED
    exchanged = {"operation": "all_to_all", "members": "4", "bytes_max": str(MIB)}
    assert ended.value(name, **exchanged) == TIMED
    bandwidth = ended.value("troupe_collective_bus_bandwidth_bytes_per_second", **exchanged)
    assert bandwidth == pytest.approx(MIB / 2e-3 * 3 / 4, rel=1e-3)
    assert ended.value("troupe_trace_calls_total", **{"class": "collective"}) == CALLS * (3 + 8)


def test_products(run):
    ended = run("products")
    per_second = "troupe_gemm_flop_per_second"
    # 2 x 1000 x 1000 x 1000 in 100 us, and five times 2 x 1000 x 1000 x 10
    assert ended.value(per_second, dtype="float16", flop_max="10000000000") == pytest.approx(2e13, rel=1e-3)
    assert ended.value(per_second, dtype="bfloat16", flop_max="100000000") == pytest.approx(1e12, rel=1e-3)
    assert ended.value(per_second, dtype="float32", flop_max="1000000") == pytest.approx(2e7, rel=1e-3)
    # cublasLt: the sizes are asked of its descriptors; two of 512 x 1024 x 256
    lt = 2 * 2 * 512 * 1024 * 256 / 1e-4
    assert ended.value(per_second, dtype="bfloat16", flop_max="1000000000") == pytest.approx(lt, rel=1e-3)
    # What cuBLAS launches itself is a part of the product.
    assert ended.value("troupe_trace_calls_total", **{"class": "gemm"}) == 4 * CALLS


def test_copies_and_kernels(run):
    ended = run("copies")
    speed = "troupe_copy_bytes_per_second"
    for direction in ("host_to_device", "device_to_host"):
        assert ended.value(speed, direction=direction) == pytest.approx(MIB / 50e-6, rel=1e-3)
    assert ended.value(speed, direction="memset") == pytest.approx(4096 / 50e-6, rel=1e-3)
    assert ended.value("troupe_trace_calls_total", **{"class": "copy"}) == 3 * CALLS


def test_one_of_many_is_timed(run):
    # Two kinds of products in turn, and an odd number of them: each kind has its turn.
    ended = run("sampled", TROUPE_TRACE_GEMM_EVERY="3")
    for flop in ("1000000", "100000000"):
        timed = ended.value("troupe_gemm_latency_seconds_count", flop_max=flop)
        assert timed == 15 - WARM_UP
    assert ended.value("troupe_trace_calls_total", **{"class": "gemm"}) == 90


def test_names_of_xpu_timer(run):
    ended = run("collectives", TROUPE_TRACE_XPU_TIMER_NAMES="1", POD_NAME="pod-0", TORCHELASTIC_RUN_ID="job")
    labels = {"operation": "all_reduce", "rank": "3", "pod_name": "pod-0", "job_name": "job"}
    for which in ("AVG", "MAX", "P99", "MIN"):
        value = ended.value(f"XPU_TIMER_COLL_KERNEL_{which}_LATENCY", **labels)
        assert value == pytest.approx(1000, rel=1e-3)  # us
    gbit = MIB * 8 * 2 * 7 / 8 / 1e-3 / 1e9
    assert ended.value("XPU_TIMER_COLL_KERNEL_BANDWIDTH", **labels) == pytest.approx(gbit, rel=1e-3)
    assert ended.value("XPU_TIMER_COMMON_HANG") == 0


def test_the_text_is_prometheus(run):
    """Each family has its type before its first sample, and no family comes twice."""
    ended = run("collectives", TROUPE_TRACE_XPU_TIMER_NAMES="1")
    text = next(ended.directory.glob("*.prom")).read_text()
    seen, family = set(), None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family = line.split()[2]
            assert family not in seen
            seen.add(family)
        elif not line.startswith("#"):
            name = line.partition("{")[0]
            assert name in (family, f"{family}_sum", f"{family}_count"), line
    assert len(seen) > 20


def test_timeline_on_request(run):
    ended = run("request", TROUPE_JOB='a "job"')
    timeline = json.loads((ended.directory / "00003-00008.timeline.json").read_text())
    calls = [event for event in timeline["traceEvents"] if event["ph"] == "X"]
    reduced = [event for event in calls if event["name"] == "all_reduce"]
    assert len(reduced) == 21
    assert all(event["dur"] == pytest.approx(1000, rel=1e-3) for event in reduced[:-1])
    assert [event["args"]["sequence"] for event in reduced] == list(range(1, 22))
    # One after the other, on one row; other streams have others.
    for before, after in zip(reduced, reduced[1:-1]):
        assert after["ts"] >= before["ts"] + before["dur"] - 1
    assert reduced[-1]["args"]["finished"] is False
    assert {event["pid"] for event in calls} == {3}
    assert len({event["tid"] for event in calls}) == 3
    assert timeline["traceEvents"][0]["args"]["name"] == 'a "job" rank 3'


def test_a_timeline_is_as_long_as_told(run):
    ended = run("request", XPU_TIMER_TIMELINE_TRACE_COUNT="7")
    timeline = json.loads((ended.directory / "00003-00008.timeline.json").read_text())
    finished = [e for e in timeline["traceEvents"] if e["ph"] == "X" and e["args"].get("finished", True)]
    assert len(finished) == 7


def test_communicators_have_names_that_members_share(run):
    ended = run("split")
    assert ended.errors == ""
    sizes = [name for name in ended.metrics() if "all_reduce" in name]
    assert not sizes  # four calls: all warm-up
    assert ended.value("troupe_trace_calls_total", **{"class": "collective"}) == 4
    assert ended.value("troupe_trace_untimed_total", reason="no_place") == 0


def test_a_thousand_communicators_one_after_the_other(run):
    ended = run("reused")
    assert ended.value("troupe_trace_untimed_total", reason="no_place") == 0
    assert ended.value("troupe_collective_latency_seconds_count", operation="all_reduce") == 1000 - WARM_UP
