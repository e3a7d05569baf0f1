"""Memory of images that were loaded: it is the tensors' as long as there are any, and then used again."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys

import pytest
import torch
from others_memory import view_of

from troupe.checkpoint import Arena, CheckpointError, library

ELEMENTS = 100_000


def who_reads_is_known():
    """Not where the kernel is old or a sandbox."""
    memory = os.memfd_create("troupe-test")
    file = os.open(f"/proc/self/fd/{memory}", os.O_RDONLY)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return False
    finally:
        os.close(file)
        os.close(memory)
    return True


pytestmark = pytest.mark.skipif(
    not who_reads_is_known(), reason="this system does not tell readers of memory"
)


@pytest.fixture
def arena():
    with Arena(threads=2) as opened:
        yield opened


def save(arena, step):
    """Returns the image."""
    arena.save(step, {"x": torch.full((ELEMENTS,), float(step)), "y": torch.arange(10)})
    image = arena.newest()
    assert image.step == step
    return image


def slots_of(arena, steps):
    return {save(arena, step).slot for step in steps}


def is_of(tensor, step):
    return bool((tensor == step).all())


def test_what_is_loaded_and_dropped_again_and_again_leaves_memory_for_saves(arena):
    used = set()
    for step in range(1, 25):
        used.add(save(arena, step).slot)
        loaded = arena.load(arena.newest())
        assert is_of(loaded["x"], step)
        del loaded
    assert len(used) == 2


def test_a_state_that_is_held_until_the_next_is_loaded_takes_one_slot_more(arena):
    used, loaded = set(), None
    for step in range(1, 25):
        used.add(save(arena, step).slot)
        assert loaded is None or is_of(loaded["x"], step - 1)
        loaded = arena.load(arena.newest())
    assert len(used) == 3


def test_no_memory_is_prepared_instead_of_what_was_dropped(arena):
    save(arena, 1)
    state = arena.load(save(arena, 2))

    def slots_with_memory():
        arena.prepare({"x": torch.zeros(ELEMENTS)})
        arena.wait_until_prepared()
        return sum(os.fstat(slot).st_size > 0 for slot in arena.descriptors[1 : 1 + library.SLOTS])

    del state
    assert slots_with_memory() == 2
    state = arena.load(arena.newest())
    assert slots_with_memory() == 3
    assert is_of(state["x"], 2)


def test_an_image_that_is_about_to_be_mapped_is_kept(arena):
    image = save(arena, 1)
    mapping = library.call("troupe_open_for_mapping", arena.handle, image.slot, image.sequence)
    assert image.slot not in slots_of(arena, range(2, 8))
    library.load().troupe_end_mapping(mapping)
    assert image.slot in slots_of(arena, range(8, 12))


@pytest.mark.parametrize("change", [False, True])
def test_one_part_of_one_tensor_keeps_the_image(arena, change):
    save(arena, 1)
    image = save(arena, 2)
    part = arena.load(image)["x"][10:20]
    if change:
        part.neg_()  # of what is written to the page is a copy, and the others are the image's still
    assert image.slot not in slots_of(arena, range(3, 9))
    assert is_of(part, -2 if change else 2)
    rest = torch.empty(0).set_(part.untyped_storage())
    assert is_of(rest[20:], 2)
    del part
    assert image.slot not in slots_of(arena, range(9, 12))
    del rest
    assert image.slot in slots_of(arena, range(12, 16))


def test_an_image_that_could_not_be_read_is_not_kept(arena):
    arena.save(1, {"x": Opaque()})
    image = arena.newest()
    with pytest.raises(CheckpointError, match="weights_only=False"):
        arena.load(image)
    assert image.slot in slots_of(arena, range(2, 5))


class Opaque:
    """Of which weights_only knows nothing."""


def test_a_forked_child_keeps_what_its_parent_has_dropped(arena):
    image = save(arena, 1)
    loaded = arena.load(image)
    there, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        os.read(there, 1)  # until the parent has saved
        # It has not looked at any of these pages before.
        os._exit(0 if loaded["x"].tolist() == [1.0] * ELEMENTS else 1)
    os.close(there)
    del loaded
    assert image.slot not in slots_of(arena, range(2, 8))
    os.close(told)
    assert os.waitpid(child, 0) == (child, 0)
    assert image.slot in slots_of(arena, range(8, 12))


LOOKS = """
import sys
from troupe.checkpoint import View, library
memory = library.call("troupe_memory_view", library.Descriptors(*map(int, sys.argv[1:])))
with View(library.call("troupe_arena_view", memory, 0)) as view:
    loaded = view.load(view.newest())
    print("loaded", flush=True)
    for asked in sys.stdin:
        if asked == "drop\\n":
            del loaded
        else:
            assert loaded["x"].tolist() == [float(asked)] * len(loaded["x"])
        print("done", flush=True)
"""


class Looking:
    """Another process that has loaded the newest image."""

    def __init__(self, arena):
        command = [sys.executable, "-c", LOOKS, *map(str, arena.descriptors)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, pass_fds=arena.descriptors, **pipes)
        assert self.process.stdout.readline() == "loaded\n"

    def does(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_what_several_processes_have_loaded_is_kept_until_none_has_it(arena):
    save(arena, 1)
    image = save(arena, 2)
    with contextlib.ExitStack() as looking:
        one, other = (looking.enter_context(Looking(arena)) for _ in range(2))
        own = arena.load(image)
        for n, drop in enumerate([lambda: own.clear(), lambda: one.does("drop"), None]):
            assert image.slot not in slots_of(arena, range(3 + 5 * n, 8 + 5 * n))
            other.does(2)
            if drop:
                drop()
        other.process.send_signal(signal.SIGKILL)
        other.process.wait()
        assert image.slot in slots_of(arena, range(18, 22))


def test_an_image_that_has_gone_meanwhile_is_not_taken_for_the_one_that_came(arena):
    image = save(arena, 1)
    with view_of(arena) as view:
        assert view.newest().sequence == image.sequence
        assert image.slot in slots_of(arena, range(2, 5))
        with pytest.raises(CheckpointError, match=f"no image {image.sequence} in slot {image.slot}"):
            view.load(image)
    assert len(slots_of(arena, range(5, 10))) == 2  # nothing is mapped
