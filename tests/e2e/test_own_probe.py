"""What a node finds out of itself before it takes part: too late, or alone. Real launchers, no PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_network_check import WITHIN, Job, devices, job

__all__ = ["job"]  # the fixture


@pytest.mark.long
def test_a_node_whose_devices_begin_later_than_the_others(job: Job, tmp_path: Path) -> None:
    job.nnodes = "3"
    late = devices(tmp_path, {}, begins_after_ms=7000)
    job.start_all(nodes=3, own={"n2": {"TROUPE_PROBE_DEVICES": late}})
    job.trained("n0", "n1", "n2")
    assert [told["names"] for told in job.fields("node_late")] == ["n2"]
    assert job.fields("node_faulty") == []


def test_a_broken_node_that_is_the_only_one_ends_at_once(job: Job, tmp_path: Path) -> None:
    job.nnodes = "1"
    job.start_all(nodes=1, own={"n0": {"TROUPE_PROBE_DEVICES": devices(tmp_path, {"failed": "no power"})}})
    assert job.runs["n0"].wait(WITHIN) == [1], job.said()
    assert "node n0 is faulty: device 0: no power; it leaves, and it is the only one" in job.runs["n0"].err()
