"""How a job ends when its workers end on their own: exit codes, restarts, the verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Start
from launchers import until


def root_cause(said: str) -> dict[str, int]:
    """Rank and exit code of what the verdict calls the root cause."""
    verdict = said[re.search("root cause", said, re.IGNORECASE).start() :]
    rank = re.search(r"rank\s*:?\s*(\d+)", verdict)
    code = re.search(r"exit ?code\s*:?\s*(-?\d+)", verdict)
    return {"rank": int(rank[1]), "code": int(code[1])}


def test_a_job_whose_workers_succeed_succeeds(shell: Start) -> None:
    run = shell("exit 0", procs=3)
    assert run.wait(60) == [0], run.err()


def test_the_launcher_waits_for_the_last_worker(shell: Start, tmp_path: Path) -> None:
    # Rank 1 goes on until the test has seen that rank 0 is done and the launcher is still there.
    script = """
    [ "$RANK" = 0 ] && { touch "$1/first-done"; exit 0; }
    until [ -e "$1/go-on" ]; do sleep 0.02; done; touch "$1/last-done"
    """
    run = shell(script, tmp_path, procs=2)
    until((tmp_path / "first-done").exists, 60, "rank 0 is done")
    assert run.launchers[0].poll() is None
    (tmp_path / "go-on").touch()
    assert run.wait(60) == [0], run.err()
    assert (tmp_path / "last-done").exists()


def test_both_nodes_end_only_when_all_workers_are_done(shell: Start, tmp_path: Path) -> None:
    script = """
    [ "$GROUP_RANK" = 0 ] && { touch "$1/first-done"; exit 0; }
    until [ -e "$1/go-on" ]; do sleep 0.02; done
    """
    run = shell(script, tmp_path, nodes=2)
    until((tmp_path / "first-done").exists, 60, "node 0's worker is done")
    assert [p.poll() for p in run.launchers] == [None, None]
    (tmp_path / "go-on").touch()
    assert run.wait(60) == [0, 0], run.err()


def test_launchers_that_start_at_the_same_moment_agree_on_one_master(
    shell: Start, tmp_path: Path
) -> None:
    # Which one is first is decided anew each time.
    jobs = [shell('echo "rank $RANK"', nodes=3, ranked=False) for _ in range(4)]
    for run in jobs:
        assert run.wait(60) == [0, 0, 0], "".join(map(run.err, range(3)))
        assert sorted(run.out(n) for n in range(3)) == ["rank 0\n", "rank 1\n", "rank 2\n"]


@pytest.mark.parametrize(
    ("ending", "code"), [("exit 7", 7), ("kill -KILL $$", -9), ("kill -SEGV $$", -11)]
)
def test_a_failed_worker_fails_the_job_with_its_code_in_the_verdict(
    shell: Start, ending: str, code: int
) -> None:
    run = shell(f'[ "$RANK" = 1 ] && {ending}; exec sleep 600', procs=2)
    assert run.wait(60) == [1]
    assert root_cause(run.err()) == {"rank": 1, "code": code}
    assert run.leftovers() == []


def test_the_root_cause_is_a_worker_that_failed_by_itself(shell: Start) -> None:
    # Rank 0 tells its error first, but its process is still there when rank 1 fails; so the launcher's signal ends it.
    script = """
    fail() { printf '{"message": {"message": "%s", "extraInfo": {"py_callstack": "", "timestamp": "%s"}}}' \\
        "$1" "$(date +%s)" > "$TORCHELASTIC_ERROR_FILE.new"; mv "$TORCHELASTIC_ERROR_FILE.new" "$TORCHELASTIC_ERROR_FILE"; }
    first=$(dirname "$TORCHELASTIC_ERROR_FILE")/../0/error.json
    [ "$RANK" = 0 ] && { fail ValueError; exec sleep 600; }
    until [ -e "$first" ]; do sleep 0.01; done; fail KeyError; exit 1
    """
    run = shell(script, procs=2)
    assert run.wait(60) == [1]
    assert root_cause(run.err()) == {"rank": 1, "code": 1}, run.err()
    assert "failed: exit code 1: KeyError" in run.err()


def test_the_whole_budget_is_used_and_no_more(shell: Start, tmp_path: Path) -> None:
    attempts = tmp_path / "attempts"
    # Rank 0 fails when rank 1 has begun as well.
    script = """
    echo $RANK >> "$1"; [ "$RANK" = 0 ] || exec sleep 600
    until [ "$(grep -c 1 "$1")" -gt "$TORCHELASTIC_RESTART_COUNT" ]; do sleep 0.02; done; exit 3
    """
    run = shell(script, attempts, procs=2, restarts=3)
    assert run.wait(60) == [1]
    assert sorted(attempts.read_text().split()) == ["0"] * 4 + ["1"] * 4
    assert root_cause(run.err()) == {"rank": 0, "code": 3}


def test_the_first_failure_is_the_root_cause_not_its_consequences(
    shell: Start, tmp_path: Path
) -> None:
    # Rank 1 fails; the others fail because of that, as ranks of a collective do.
    script = """
    case $RANK in
      1) echo $$ > "$1/lost"; exit 42 ;;
      *) trap 'exit 9' TERM; until [ -s "$1/lost" ]; do sleep 0.05; done
         while kill -0 "$(cat "$1/lost")" 2>&-; do sleep 0.05; done; exit 9 ;;
    esac
    """
    run = shell(script, tmp_path, procs=3)
    assert run.wait(60) == [1]
    assert root_cause(run.err()) == {"rank": 1, "code": 42}


def test_a_failure_on_one_node_is_the_verdict_on_both(shell: Start) -> None:
    run = shell('[ "$RANK" = 1 ] && exit 42; exec sleep 600', nodes=2)
    assert run.wait(60) == [1, 1]
    for node in (0, 1):
        assert root_cause(run.err(node)) == {"rank": 1, "code": 42}, run.err(node)
    assert run.leftovers() == []


def test_a_restarted_job_that_then_succeeds_ends_with_0(shell: Start, tmp_path: Path) -> None:
    script = 'mkdir "$1/failed-once" 2>/dev/null && exit 1; exit 0'
    run = shell(script, tmp_path, restarts=1)
    assert run.wait(60) == [0], run.err()


@pytest.mark.parametrize(("end", "code"), [("exit 7", 7), ("kill -KILL $$", 137)])
def test_the_exit_code_is_the_root_causes_if_that_is_asked_for(
    shell: Start, end: str, code: int
) -> None:
    run = shell(f'[ "$RANK" = 1 ] && {end}; exec sleep 60', procs=2, options=["--propagate-exit-code"])
    assert run.wait(60) == [code], run.err()


def test_failures_at_the_start_leave_time_for_their_cause_to_go_away(
    shell: Start, tmp_path: Path
) -> None:
    script = """
    echo >> "$1/starts"
    [ -e "$1/first" ] || touch "$1/first"
    [ -n "$(find "$1/first" -not -newermt '-3 seconds')" ]
    """
    run = shell(script, tmp_path, restarts=20)
    assert run.wait(60) == [0], run.err()
    assert len((tmp_path / "starts").read_text().split("\n")) - 1 < 10
    assert "restarting the workers in 100 ms, since the last 2 generations have failed" in run.err()
