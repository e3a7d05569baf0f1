"""Processes that hang in the ways training does: what is shown of them, and that they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest

from conftest import Dump, Frame, Thread, usual_builds

Start = Callable[..., "subprocess.Popen[str]"]
Stacks = Callable[..., Dump]

SLEEP = """
    import time
    def outer():
        inner()
    def inner():
        print("ready", flush=True)
        time.sleep(
            1000)
    outer()
"""

DEADLOCK = """
    import sys, threading, time
    a, b = threading.Lock(), threading.Lock()
    class Holder:
        def take(self, first, second, met):
            with first:
                met.wait()
                second.acquire()
    met = threading.Barrier(3)
    for pair in ((a, b), (b, a)):
        threading.Thread(target=Holder().take, args=(*pair, met), daemon=True).start()
    met.wait()
    while sum(frame.f_lineno == 8 for frame in sys._current_frames().values()) < 2:
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(1000)
"""

HOLDS_THE_LOCK = """
    import ctypes, threading, time
    def waits():
        time.sleep(0.2)
        while True:
            time.sleep(0.01)
    threading.Thread(target=waits, daemon=True).start()
    def holds():
        print("ready", flush=True)
        ctypes.PyDLL(None).sleep(1000)
    holds()
"""

BUSY = """
    def spins(n):
        while True:
            n += 1
            n -= 1
    print("ready", flush=True)
    spins(1)
"""

MOVES = """
    def one():
        sum(range(200_000))
    def two():
        sorted(range(100_000))
    print("ready", flush=True)
    while True:
        one(); two()
"""

BUSY_BESIDE_A_TIMER = """
    import threading, time
    def ticks():
        while True:
            time.sleep(0.02)
            sum(range(10_000))
    threading.Thread(target=ticks, daemon=True).start()
    def spins(n):
        while True:
            n += 1
            n -= 1
    print("ready", flush=True)
    spins(1)
"""

MOVES_IN_A_THREAD = """
    import threading
    def one():
        sum(range(200_000))
    def two():
        sorted(range(100_000))
    def works():
        while True:
            one(); two()
    thread = threading.Thread(target=works, daemon=True)
    thread.start()
    print("ready", flush=True)
    thread.join()
"""

MANY = """
    import asyncio, faulthandler, signal, sys, threading, time
    faulthandler.register(signal.SIGUSR1, file=open(sys.argv[0] + ".frames", "w"), all_threads=True)
    gate = threading.Event()
    started = threading.Semaphore(0)
    def wait():
        started.release()
        gate.wait()
    def deep(n):
        if n:
            return deep(n - 1)
        wait()
    def generator():
        yield 1
        wait()
    def grün_日本():
        for _ in generator():
            pass
    async def coroutine():
        await asyncio.sleep(0)
        wait()
    def by_c():
        sorted([1, 2], key=lambda x: wait())
    class Called:
        def __call__(self):
            (lambda:
                [wait()
                 for _ in range(1)])()
    for target in (lambda: deep(100), grün_日本, lambda: asyncio.run(coroutine()), by_c, Called()):
        threading.Thread(target=target, daemon=True).start()
    for _ in range(5):
        started.acquire()
    time.sleep(0.2)
    print("ready", flush=True)
    gate.wait()
"""


def lines_of(thread: Thread) -> list[tuple[str, int]]:
    return [(f.function.rpartition(".")[2], f.line) for f in thread.python]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_sleep(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, SLEEP)
    dump = stacks("--samples", 3, "--apart", 50, process.pid)
    (main,) = dump.threads
    assert [name for name, _ in lines_of(main)] == ["inner", "outer", "<module>"]
    assert main.python[0].line in (7, 8)
    assert [line for _, line in lines_of(main)][1:] == [4, 9]
    assert not main.holds_lock
    assert "it is in one call, which may take long" in dump.text  # a timer may be long, and is no deadlock
    assert any("nanosleep" in f.function or "select" in f.function for f in main.native)
    assert "missing" not in dump.text and dump.code == 0


def test_deadlock(python: str, start: Start, stacks: Stacks) -> None:
    dump = stacks(start(python, DEADLOCK).pid)
    waiting = [t for t in dump.threads if lines_of(t)[:1] == [("take", 8)]]
    assert len(waiting) == 2
    assert len({t.id for t in dump.threads}) == 3 and all(t.id for t in dump.threads)
    assert not any(t.holds_lock for t in dump.threads)


def test_the_lock_is_held_in_c(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, HOLDS_THE_LOCK)
    time.sleep(0.3)
    dump = stacks(process.pid)
    assert [t.holds_lock for t in dump.threads] == [True, False]
    assert lines_of(dump.threads[0]) == [("holds", 10), ("<module>", 11)]
    assert lines_of(dump.threads[1])[0][0] == "waits"
    assert any("sleep" in f.function for f in dump.threads[0].native)


def test_busy(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, BUSY)
    for _ in range(10):
        dump = stacks("--samples", 3, "--python-only", process.pid)
        (main,) = dump.threads
        assert [name for name, _ in lines_of(main)] == ["spins", "<module>"]
        assert lines_of(main)[0][1] in (3, 4, 5)
        assert main.holds_lock
    assert "stands still and uses a processor" in dump.text


def test_moving(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, MOVES)
    found = [stacks("--samples", 20, "--apart", 7, process.pid).text for _ in range(3)]
    assert any("it moves" in text for text in found)


def test_a_loop_beside_a_timer_stands(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, BUSY_BESIDE_A_TIMER)
    found = [stacks("--samples", 20, "--python-only", process.pid).text for _ in range(3)]
    # On a busy machine it may be seen at one place each time: then it may as well be in one call.
    assert not any("it moves" in text for text in found)
    assert any("stands still and uses a processor" in text for text in found)


def test_a_thread_that_moves_beside_one_that_waits(
    python: str, start: Start, stacks: Stacks
) -> None:
    process = start(python, MOVES_IN_A_THREAD)
    found = [stacks("--samples", 20, "--apart", 7, process.pid).text for _ in range(3)]
    assert any("it moves" in text for text in found)


def test_stopped(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, SLEEP)
    process.send_signal(signal.SIGSTOP)
    while state_of(process.pid) != "T":
        time.sleep(0.01)
    dump = stacks("--samples", 2, "--apart", 20, process.pid)
    (main,) = dump.threads
    assert [name for name, _ in lines_of(main)] == ["inner", "outer", "<module>"]
    assert main.native and "it is stopped" in dump.text
    assert state_of(process.pid) == "T"
    process.send_signal(signal.SIGCONT)
    while state_of(process.pid) == "T":
        time.sleep(0.01)


def frames_by_faulthandler(process: "subprocess.Popen[str]") -> list[list[tuple[str, int]]]:
    """Of each thread, in no order; faulthandler names functions without their classes."""
    assert isinstance(process.args, list)
    path = Path(str(process.args[1]) + ".frames")
    process.send_signal(signal.SIGUSR1)
    text, before = "", None
    while not text or text != before:
        before, text = text, path.read_text(encoding="utf-8")
        time.sleep(0.2)
    threads: list[list[tuple[str, int]]] = []
    for line in text.splitlines():
        if line.startswith(("Thread ", "Current thread")):
            threads.append([])
        elif line.startswith("  File"):
            _, _, rest = line.partition(", line ")
            number, _, name = rest.partition(" in ")
            threads[-1].append((name.rpartition(".")[2], int(number)))
    return threads


def test_the_same_as_faulthandler(python: str, start: Start, stacks: Stacks) -> None:
    process = start(python, MANY)
    dump = stacks("--python-only", process.pid)
    assert len(dump.threads) == 6 and "missing" not in dump.text
    # Faulthandler writes what is not ASCII as \uXXXX, and at most a hundred frames.
    ours = sorted(
        [(n.encode("ascii", "backslashreplace").decode(), at) for n, at in lines_of(t)][:100]
        for t in dump.threads
    )
    theirs = sorted(
        [(n.lower() if "\\u" in n else n, at) for n, at in frames][:100]
        for frames in frames_by_faulthandler(process)
    )
    ours = [[(n.replace("\\xfc", "\\u00fc") if "\\x" in n else n, at) for n, at in t] for t in ours]
    theirs = [[(n.replace("\\xfc", "\\u00fc"), at) for n, at in t] for t in theirs]
    assert sorted(ours) == sorted(theirs)


def test_the_same_as_py_spy(python: str, start: Start, stacks: Stacks, py_spy: str) -> None:
    process = start(python, MANY)
    dump = stacks("--python-only", process.pid)
    said = subprocess.run(
        [py_spy, "dump", "--json", "--pid", str(process.pid)], capture_output=True, text=True
    )
    if said.returncode != 0:
        pytest.skip(f"py-spy cannot read this interpreter: {said.stderr.strip()[-200:]}")
    theirs = {
        thread["os_thread_id"]: [
            Frame(f["name"].rpartition(".")[2], f["filename"], f["line"]) for f in thread["frames"]
        ]
        for thread in json.loads(said.stdout)
    }
    ours = {
        t.id: [Frame(f.function.rpartition(".")[2], f.source, f.line) for f in t.python]
        for t in dump.threads
    }
    assert ours == theirs


def test_data_loader(start: Start, stacks: Stacks) -> None:
    import sys

    process = start(
        sys.executable,
        """
        import time
        import torch.utils.data as data
        class Slow(data.Dataset):
            def __len__(self):
                return 100
            def __getitem__(self, n):
                if n == 3:
                    print("ready", flush=True)
                time.sleep(1000 if n == 3 else 0.01)
                return n
        for batch in data.DataLoader(Slow(), batch_size=1, num_workers=4):
            pass
        """,
    )
    processes = stacks("--children", process.pid).text.split("\n\n")
    roles = [p.splitlines()[0] for p in processes if p]
    assert f"Process {process.pid} " in roles[0] and "data loader" not in roles[0]
    named = sorted(r.partition("data loader worker ")[2][:1] for r in roles[1:])
    assert named == ["0", "1", "2", "3"]
    # The others may be at an item of their own still.
    (slow,) = (p for p in processes if "data loader worker 3" in p)
    assert "__getitem__" in slow


def test_messages(start: Start, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """What a node supervisor reads is what `actor-stacks` merges."""
    import sys

    program = Path(request.config.getoption("--stacks")).absolute()
    directory = tmp_path / "dumps"
    directory.mkdir()
    for rank in range(2):
        process = start(sys.executable, SLEEP)
        with open(directory / f"rank-0000{rank}-of-00002.stacks", "wb") as file:
            arguments = ["--messages", "--world", "2", f"{process.pid}:{rank}"]
            subprocess.run([program, *arguments], stdout=file, check=True, timeout=60)
    merge = [program.with_name("actor-stacks"), "--path", directory]
    done = subprocess.run(merge, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    pictures = [p for p in tmp_path.rglob("py_stack*") if p.is_file()]
    assert pictures and any("inner@" in p.read_text() for p in pictures), pictures


def test_a_full_file_system(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = Path(request.config.getoption("--stacks")).absolute()
    script = f"""
        mount -t tmpfs -o size=2m none {tmp_path} || exit 77
        cd {tmp_path}; head -c 4m /dev/zero > filler 2>/dev/null
        {program} $$
    """
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True
    )
    if done.returncode in (1, 77) and "Process" not in done.stdout:
        pytest.skip("no file system may be mounted here")
    assert f"the file system of {tmp_path} is full" in done.stdout, done.stdout + done.stderr


def test_every_usual_build_is_read(stacks: Stacks, tmp_path: Path) -> None:
    builds = usual_builds(tmp_path)
    script = tmp_path / "sleeps.py"
    script.write_text("import time\ndef inner():\n    print('ready', flush=True)\n    time.sleep(1000)\ninner()\n")
    wrong = []
    for build in builds:
        environment = {**os.environ, **({"PYTHONHOME": build.home} if build.home else {})}
        with subprocess.Popen(
            [build.program, script], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                assert process.stdout.readline() == "ready\n", build
                dump = stacks("--python-only", process.pid)
            finally:
                process.kill()
        names = [name for thread in dump.threads for name, _ in lines_of(thread)]
        if names != ["inner", "<module>"] or f"Python {build.version}" not in dump.text:
            wrong.append((build, dump.text + dump.errors))
    assert not wrong, "\n".join(f"{build}:\n{text}" for build, text in wrong)
    print(f"{len(builds)} builds:", *sorted({build.version for build in builds}))


def test_a_stripped_program(stacks: Stacks) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        while "sleep" not in Path(f"/proc/{process.pid}/comm").read_text():
            time.sleep(0.01)
        time.sleep(0.1)
        dump = stacks(process.pid)
        process.kill()
    (main,) = dump.threads
    assert not main.python
    assert any("libc" in f.source and "nanosleep" in f.function for f in main.native)
    assert any(f.source.endswith("/sleep") for f in main.native)


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--samples"], "--samples needs a value"),
        (["--apart", "x", "1"], "--apart: 'x' is not a whole number"),
        (["hello"], "'hello' is neither an option nor the number of a process"),
        (["7:x"], "'7:x' is neither an option nor the number of a process"),
        (["--world", "2", "7:2"], "rank 2 is not one of 2"),
        (["--samples", "1", "7"], "one sample tells no motion"),
        ([], "1 to 1024 processes must be named"),
        (["--python-only", "--native-only", "1"], "leave nothing"),
        ([str(1 << 29)], f"there is no process {1 << 29}"),
    ],
)
def test_bad_words(arguments: list[str], told: str, stacks: Stacks) -> None:
    dump = stacks(*arguments)
    assert dump.code != 0
    assert told in dump.errors and dump.errors.count("\n") == 1


def test_one_of_several_is_gone(start: Start, stacks: Stacks) -> None:
    import sys

    process = start(sys.executable, SLEEP)
    dump = stacks(1 << 29, process.pid)
    assert dump.code == 1 and "no process" in dump.errors
    assert dump.with_function("inner").id == process.pid


def test_the_deadline_ends_it(start: Start, stacks: Stacks) -> None:
    dump = stacks("--samples", 100, "--apart", 1000, "--within", 300, os.getpid())
    assert dump.code == 1 and "not all could be read within 300 ms" in dump.errors
