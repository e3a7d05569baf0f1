"""Signals to the launcher, workers that do not behave: always an end in time, and nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Start
from launchers import TAG, Launcher, Run, alive, base_environment, end_tagged, until

# How long a stubborn worker may take, where a test sets it; else 30 s, so that such a test waits less.
SHUTDOWN = ["--shutdown-timeout=1"]
WITHIN = 25


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_the_launcher_reaches_the_workers_first(
    shell: Start, tmp_path: Path, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"""
    trap 'echo {name} >> "$1/signals"; exit 0' {name}
    echo $$ >> "$1/ready"; while :; do sleep 0.05; done
    """
    run = shell(script, tmp_path, procs=2)
    until(lambda: len(lines(tmp_path / "ready")) == 2, 60, "both workers")
    run.launchers[0].send_signal(number)
    assert run.wait(60) == [128 + number]
    assert lines(tmp_path / "signals") == [name, name]
    assert run.leftovers() == []


def test_a_worker_that_ignores_sigterm_is_killed_after_the_shutdown_timeout(
    shell: Start, tmp_path: Path
) -> None:
    script = """trap '' TERM; echo $$ >> "$1/ready"; while :; do sleep 0.05; done"""
    run = shell(script, tmp_path, procs=2, options=SHUTDOWN)
    until(lambda: len(lines(tmp_path / "ready")) == 2, 60, "both workers")
    run.launchers[0].terminate()
    assert run.wait(WITHIN) == [128 + signal.SIGTERM]
    assert run.leftovers() == []


def test_a_sibling_that_ignores_sigterm_does_not_hold_up_a_restart(
    shell: Start, tmp_path: Path
) -> None:
    script = """
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
    if [ "$RANK" = 0 ]; then until [ -e "$1/stubborn" ]; do sleep 0.02; done; exit 1; fi
    trap '' TERM; touch "$1/stubborn"; while :; do sleep 0.05; done
    """
    run = shell(script, tmp_path, procs=2, restarts=1, options=SHUTDOWN)
    assert run.wait(WITHIN) == [0], run.err()
    assert run.leftovers() == []


def test_a_stopped_sibling_does_not_hold_up_a_restart(shell: Start, tmp_path: Path) -> None:
    """It is continued for the signal that ends it: the shutdown timeout is the default one here."""
    script = """
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
    if [ "$RANK" = 1 ]; then echo $$ > "$1/pid"; kill -STOP $$; fi
    until [ -s "$1/pid" ] && grep -q 'State:.T' "/proc/$(cat "$1/pid")/status"; do sleep 0.02; done; exit 1
    """
    run = shell(script, tmp_path, procs=2, restarts=1)
    assert run.wait(WITHIN) == [0], run.err()
    assert run.leftovers() == []


def test_a_launcher_that_is_stopped_by_the_terminal_goes_on_in_the_background(
    shell: Start, tmp_path: Path
) -> None:
    script = """
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
    touch "$1/ready"; until [ -e "$1/fail" ]; do sleep 0.02; done; exit 1
    """
    run = shell(script, tmp_path, restarts=1)
    until((tmp_path / "ready").exists, 60, "the worker")
    run.launchers[0].send_signal(signal.SIGTSTP)
    until(lambda: "Ctrl-Z" in run.err(), 30, "the line that says so")
    (tmp_path / "fail").touch()
    assert run.wait(WITHIN) == [0], run.err()


@pytest.mark.parametrize("nodes", [1, 2])
def test_workers_do_not_outlive_a_launcher_that_is_killed(
    shell: Start, tmp_path: Path, nodes: int
) -> None:
    run = shell('echo $$ >> "$1/ready"; exec sleep 600', tmp_path, procs=2, nodes=nodes)
    until(lambda: len(lines(tmp_path / "ready")) == 2 * nodes, 60, "all workers")
    for launcher in run.launchers:
        launcher.kill()
    workers = [int(pid) for pid in lines(tmp_path / "ready")]
    until(lambda: not any(map(alive, workers)), 60, "the workers are gone")
    until(lambda: run.leftovers() == [], 60, "nothing is left")


def test_a_user_who_waits_is_told_for_what_and_a_second_ctrl_c_ends_it_now(
    shell: Start, tmp_path: Path
) -> None:
    script = """trap '' INT TERM; echo $$ >> "$1/ready"; while :; do sleep 0.05; done"""
    run = shell(script, tmp_path, procs=2)
    until(lambda: len(lines(tmp_path / "ready")) == 2, 60, "both workers")
    run.launchers[0].send_signal(signal.SIGINT)
    until(lambda: "ranks 0, 1 have not ended" in run.err(), 60, "the countdown")
    assert "the job ends. Workers have 30 s to end; a second Ctrl-C kills them now" in run.err()
    assert "failed" not in run.err()
    run.launchers[0].send_signal(signal.SIGINT)
    assert run.wait(WITHIN) == [130]
    assert "stopped by signal 2 (SIGINT) after" in run.err()
    assert run.leftovers() == []


# Counts the signals that ask it to end, and takes a second to save.
SAVER = """
import os, signal, sys, time
heard = []
def save(*_):
    heard.append(1)
    time.sleep(1)
    open(sys.argv[1] + "/saved", "w").write(str(len(heard)))
    os._exit(0)
signal.signal(signal.SIGTERM, save)
open(sys.argv[1] + "/ready", "w").close()
signal.pause()
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["below a shell", "in a session of its own"])
def test_what_a_worker_leaves_behind_may_save_at_a_preemption(
    shell: Start, tmp_path: Path, how: str
) -> None:
    (tmp_path / "saver.py").write_text(SAVER)
    saver = f'{sys.executable} "$1/saver.py" "$1"'
    # The shell waits for Python in the first case, and for nothing of ours in the second.
    script = f"{saver}\necho over" if how == "below a shell" else f"setsid -f {saver}\nsleep 600"
    run = shell(script, tmp_path)
    until((tmp_path / "ready").exists, 60, "the helper")
    run.launchers[0].terminate()
    assert run.wait(WITHIN) == [128 + signal.SIGTERM], run.err()
    assert (tmp_path / "saved").read_text() == "1"
    assert run.leftovers() == []


def test_an_upload_after_a_good_end_is_waited_for_and_the_user_is_told(
    shell: Start, tmp_path: Path
) -> None:
    upload = 'touch "$0.began"; until grep -q "waiting for" "$1"; do sleep 0.05; done; touch "$0"'
    begun = 'until [ -e "$1/sent.began" ]; do sleep 0.02; done'
    script = f"""setsid -f sh -c '{upload}' "$1/sent" "$2"; {begun}"""
    run = shell(script, tmp_path, tmp_path / "run-0" / "node-0.err")
    assert run.wait(WITHIN) == [0], run.err()
    assert (tmp_path / "sent").exists(), run.err()
    # A child that the shell has at that moment is named beside it.
    told = r"waiting for \d process(es)? the workers have left behind, .*\bsh \(pid "
    assert re.search(told, run.err()), run.err()
    assert "more to finish (--shutdown-timeout)" in run.err()
    assert run.leftovers() == []


SHARES = """
import os, sys
import torch.multiprocessing as mp
mp.set_sharing_strategy("file_system")

def share(queue, over):
    import torch
    queue.put(torch.ones(8))
    over.wait()

context = mp.get_context("fork")
queue, over = context.Queue(), context.Event()
context.Process(target=share, args=(queue, over), daemon=True).start()
tensor = queue.get()
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os._exit(int(os.environ["RANK"]))  # without a word to anything
over.set()
"""


def test_shared_memory_of_workers_that_end_is_unlinked(start: Start, tmp_path: Path) -> None:
    """At a restart and at the end, by what PyTorch has for it, which nothing ends before that."""
    (tmp_path / "shares.py").write_text(SHARES)
    before = set(os.listdir("/dev/shm"))
    run = start([str(tmp_path / "shares.py")], procs=2, restarts=1)
    assert run.wait(120) == [0], run.err()
    assert run.leftovers() == []
    assert [name for name in os.listdir("/dev/shm") if name.startswith("torch_") and name not in before] == []


# A daemon of the classic kind: a session of its own, no parent, and deaf to SIGTERM and SIGHUP.
DAEMON = """
(setsid sh -c 'trap "" TERM HUP; echo $$ >> "$1/daemons"; while :; do sleep 0.05; done' d "$1" &) &
wait; until [ -s "$1/daemons" ]; do sleep 0.02; done
"""


def test_a_daemon_of_a_worker_that_succeeded_ends_with_the_job(
    shell: Start, tmp_path: Path
) -> None:
    run = shell(DAEMON, tmp_path, options=SHUTDOWN)
    assert run.wait(60) == [0], run.err()
    assert len(lines(tmp_path / "daemons")) == 1
    assert run.leftovers() == []


def test_a_daemon_does_not_survive_sigterm_to_the_launcher(shell: Start, tmp_path: Path) -> None:
    run = shell(DAEMON + "exec sleep 600", tmp_path, options=SHUTDOWN)
    until(lambda: lines(tmp_path / "daemons"), 60, "the daemon")
    run.launchers[0].terminate()
    assert run.wait(WITHIN) == [128 + signal.SIGTERM]
    assert run.leftovers() == []


def test_a_daemon_of_an_older_generation_is_gone_when_the_next_begins(
    shell: Start, tmp_path: Path
) -> None:
    script = f"""
    if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then {DAEMON} exit 1; fi
    kill -0 "$(cat "$1/daemons")" 2>/dev/null && touch "$1/still-there"; exit 0
    """
    run = shell(script, tmp_path, restarts=1, options=SHUTDOWN)
    assert run.wait(60) == [0], run.err()
    assert not (tmp_path / "still-there").exists()


FLOOD_BYTES = 64 << 20


def test_a_flood_of_output_arrives_whole(shell: Start) -> None:
    run = shell(f"yes | head -c {FLOOD_BYTES}", procs=2)
    assert run.wait(120) == [0], run.err()
    assert run.out().count("y") >= FLOOD_BYTES  # two workers, half of it newlines
    assert run.leftovers() == []


def test_a_flood_that_nobody_reads_does_not_keep_the_launcher_from_ending(
    launcher: Launcher, tmp_path: Path
) -> None:
    tag = Run(launcher, [], tmp_path).tag
    script = tmp_path / "flood.sh"
    script.write_text('touch "$1/flooding"; exec yes')
    worker = ["/bin/sh", str(script), str(tmp_path)]
    command = launcher.command(worker, python=False, options=SHUTDOWN)
    environment = base_environment() | {TAG: tag}
    unread, write_end = os.pipe()
    try:
        process = subprocess.Popen(
            command, env=environment, stdout=write_end, stderr=subprocess.DEVNULL
        )
        os.close(write_end)
        until((tmp_path / "flooding").exists, 60, "the flood")
        process.terminate()
        assert process.wait(WITHIN) == 128 + signal.SIGTERM
    finally:
        end_tagged(tag)
        os.close(unread)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_request_is_passed_on_to_the_workers_and_the_job_goes_on(
    shell: Start, tmp_path: Path, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"""
    trap 'echo {name} >> "$1/signals"' {name}
    echo $$ >> "$1/ready"; until [ -e "$1/enough" ]; do sleep 0.05; done
    """
    run = shell(script, tmp_path, procs=2, options=[f"--signals-to-handle=SIGTERM,{number.name}"])
    until(lambda: len(lines(tmp_path / "ready")) == 2, 60, "both workers")
    for heard in (2, 4):
        run.launchers[0].send_signal(number)
        until(lambda: len(lines(tmp_path / "signals")) == heard, 60, "both workers hear it")
    (tmp_path / "enough").touch()
    assert run.wait(60) == [0], run.err()


def test_a_signal_that_is_not_to_be_handled_ends_the_launcher_and_the_workers_with_it(
    shell: Start, tmp_path: Path
) -> None:
    script = """echo $$ >> "$1/ready"; while :; do sleep 0.05; done"""
    run = shell(script, tmp_path, procs=2, options=["--signals-to-handle=SIGINT"])
    until(lambda: len(lines(tmp_path / "ready")) == 2, 60, "both workers")
    run.launchers[0].terminate()
    assert run.wait(60) == [-signal.SIGTERM]
    until(lambda: run.leftovers() == [], 60, "the workers' end")
