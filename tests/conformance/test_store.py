"""PyTorch's own clients against our store: each story is told to torch's server too, and must end the same."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from conftest import PATIENCE, Connect

SHORT = timedelta(milliseconds=300)
Story = Callable[[Connect], Any]


def outcome(act: Callable[[], Any]) -> Any:
    """What came of it; of a failure its kind and first line, without what differs from run to run."""
    try:
        return act()
    except Exception as e:  # the kind is the result
        return type(e).__name__, re.sub(r"after \d+ms", "", str(e).splitlines()[0])


def impatiently(store: dist.TCPStore, act: Callable[[], Any]) -> Any:
    """What this is to wait for in vain is not waited for long; all else may take its time."""
    store.set_timeout(SHORT)
    try:
        return act()
    finally:
        store.set_timeout(PATIENCE)


def values(connect: Connect) -> Any:
    s = connect()
    return [
        outcome(act)
        for act in (
            lambda: s.set("k", "v"),
            lambda: s.get("k"),
            lambda: s.set("k", "w" * 100_000),
            lambda: s.get("k"),
            lambda: s.set("empty", ""),
            lambda: s.get("empty"),
            lambda: s.set("", "value of the empty name"),
            lambda: s.get(""),
            lambda: s.set("bytes", "\0\n é"),
            lambda: s.get("bytes"),
            lambda: s.append("k2", "x"),
            lambda: s.append("k2", "y"),
            lambda: s.get("k2"),
            lambda: s.delete_key("k2"),
            lambda: s.delete_key("k2"),
            lambda: s.check(["k", "k2"]),
            lambda: s.check(["k"]),
            lambda: s.check([]),
            lambda: s.num_keys(),
            lambda: sorted(s.list_keys()),
        )
    ]


def counters(connect: Connect) -> Any:
    s = connect()
    s.set("seven", "7")
    s.set("mixed", "12abc")
    return [
        s.add("n", 1),
        s.add("n", -10),
        s.get("n"),
        s.add("seven", 1),
        s.add("mixed", 1),
        s.get("mixed"),
        s.add("big", 2**62),
        s.add("big", 2**62 - 1),
    ]


def adding_to_no_number(connect: Connect) -> Any:
    s = connect()
    s.set("k", "abc")
    kind, _ = outcome(lambda: s.add("k", 1))
    return kind, connect().get("k")


def comparisons(connect: Connect) -> Any:
    s = connect()
    return [
        s.compare_set("k", "expected", "v"),
        s.check(["k"]),
        s.compare_set("k", "", "v"),
        s.compare_set("k", "other", "w"),
        s.compare_set("k", "v", "w"),
        s.get("k"),
    ]


def several_at_once(connect: Connect) -> Any:
    s = connect()
    names = [f"key{i}" for i in range(500)]
    s.multi_set(names, [f"value{i}" for i in range(500)])
    return [s.multi_get(names[::7]), s.multi_get([]), s.num_keys()]


def queues(connect: Connect) -> Any:
    s = connect()
    return [
        outcome(act)
        for act in (
            lambda: s.queue_push("q", "1"),
            lambda: s.queue_push("q", "2"),
            lambda: s.queue_len("q"),
            lambda: s.check(["q"]),
            lambda: s.queue_pop("q"),
            lambda: s.queue_pop("q", False),
            lambda: s.queue_pop("q", False),
            lambda: impatiently(s, lambda: s.queue_pop("q")),
            lambda: s.queue_len("q"),
            lambda: s.num_keys(),
        )
    ]


def a_queue_between_two(connect: Connect) -> Any:
    maker, taker = connect(), connect()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(lambda: [taker.queue_pop("q") for _ in range(20)])
        for i in range(20):
            maker.queue_push("q", str(i))
        return taken.result()


def waiting(connect: Connect) -> Any:
    s, other = connect(), connect()
    said = [
        outcome(lambda: s.wait(["never"], SHORT)),
        outcome(lambda: s.wait(["never", "neither"], SHORT)),
        s.add("n", 1),  # the connection is of use after that
    ]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: (s.wait(["a", "b", "n"]), s.get("a"))[1])
        other.set("a", "1")
        other.add("b", 1)
        said.append(done.result())
    other.append("c", "x")
    s.wait(["c"])
    impatient = connect()
    nothing = outcome(lambda: impatiently(impatient, lambda: impatient.get("nothing")))
    return [*said, nothing, impatient.num_keys()]


def barriers(connect: Connect) -> Any:
    stores = [connect() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda s: s.barrier("all", 8), stores))
    s = stores[0]
    return [
        s.get("all"),
        s.barrier("all", 8),
        outcome(lambda: s.barrier("lonely", 2, SHORT)),
        s.get("lonely"),
        sorted(s.list_keys()),
    ]


def prefixes(connect: Connect) -> Any:
    plain = connect()
    inner = dist.PrefixStore("outer", dist.PrefixStore("inner", plain))
    other = dist.PrefixStore("other", plain)
    inner.set("k", "v")
    other.set("k", "w")
    inner.append("k", "x")
    inner.multi_set(["a", "b"], ["1", "2"])
    inner.queue_push("q", "item")
    return [
        inner.get("k"),
        other.get("k"),
        inner.add("n", 3),
        inner.multi_get(["a", "b"]),
        inner.queue_pop("q"),
        inner.compare_set("k", "vx", "done"),
        inner.delete_key("k"),
        inner.check(["k"]),
        other.check(["k"]),
        plain.num_keys(),
        sorted(plain.list_keys()),
    ]


def clones(connect: Connect) -> Any:
    s = connect()
    twin = s.clone()
    s.set("k", "v")
    return twin.get("k")


def too_much(connect: Connect) -> Any:
    """Beyond the bounds a connection ends; which call sees it first is a matter of timing."""
    said = []
    for act in (
        lambda s: s.set("k" * 8_193, "v"),
        lambda s: s.set("k", "v" * ((8 << 20) + 1)),
    ):
        s = connect()
        said.append(outcome(lambda: (act(s), s.get("there"), "served")[-1]) == "served")
    allowed = connect()
    allowed.set("k" * 8_191, "v" * (8 << 20))
    return [*said, len(allowed.get("k" * 8_191)), allowed.num_keys()]


def many_clients(connect: Connect) -> Any:
    """64 threads with a client each: a counter, a value to everybody, a barrier at the end."""
    together = threading.Barrier(64)

    def life(rank: int) -> tuple[int, int]:
        s = connect()
        together.wait()
        for _ in range(50):
            s.add("sum", rank)
        s.set(f"from/{rank}", str(rank))
        s.wait([f"from/{r}" for r in range(64)])
        heard = sum(int(v) for v in s.multi_get([f"from/{r}" for r in range(64)]))
        s.barrier("end", 64)
        return heard, s.add("sum", 0)

    with ThreadPoolExecutor(64) as pool:
        return sorted(set(pool.map(life, range(64))))


STORIES: tuple[Story, ...] = (
    values,
    counters,
    adding_to_no_number,
    comparisons,
    several_at_once,
    queues,
    a_queue_between_two,
    waiting,
    barriers,
    prefixes,
    clones,
    too_much,
    many_clients,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_ends_as_with_torchs_server(story: Story, ours: Connect, theirs: Connect) -> None:
    assert story(ours) == story(theirs)


def test_workers_wait_for_each_other(our_port: int) -> None:
    """world_size counts clients under init/, a key without a slash."""

    def come(_: int) -> int:
        store = dist.TCPStore("127.0.0.1", our_port, 4, is_master=False, wait_for_workers=True)
        return store.num_keys()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(come, range(4))) == [1] * 4


GLOO = Path(__file__).with_name("gloo_worker.py")


def test_gloo_over_our_store(our_port: int) -> None:
    """env:// as a launcher of ours sets it: no worker hosts the store."""
    environment = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(our_port),
        "WORLD_SIZE": "4",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
    }
    workers = [
        subprocess.Popen(
            [sys.executable, GLOO],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(4)
    ]
    said = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, said
    assert [lines.splitlines()[-1] for lines in said] == ["10.0 [0, 1, 2, 3] 6"] * 4
