"""What we lay out in memory, read by PyTorch's own reader and by Python's zipfile; what PyTorch writes, read by us."""

import collections
import ctypes
import io
import mmap
import os
import random
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass

import pytest
import torch
from torch.utils.serialization import config

from troupe.checkpoint import Arena, CheckpointError, library

KEY = torch.tensor([1.5, -2.0])


@dataclass
class Custom:  # no saver would have to know it
    words: str
    tensor: torch.Tensor


def states():
    base = torch.arange(1000.0)
    yield "plain", {"a": torch.arange(3), "b": torch.ones(5, dtype=torch.int8)}
    yield "nested", {"x": [{"y": (KEY, 1, "text", None, 2.5)}, {1: KEY}], "o": collections.OrderedDict(z=KEY)}
    yield "nothing", {}
    yield "no tensors", {"lr": 1e-3, "names": ["a"] * 1000}
    yield "views", {"base": base, "part": base[10:20], "every other": base[::2], "turned": base.view(10, 100).T}
    yield "empty", {"e": torch.empty(0), "e2": torch.empty(3, 0, 2), "full": KEY}
    yield "scalar", {"s": torch.tensor(7)}
    yield "expanded", {"e": torch.tensor([1.0]).expand(1000, 1000)}
    yield "types", {
        str(t): torch.arange(16).to(t)
        for t in (torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2,
                  torch.complex64, torch.complex128, torch.bool, torch.uint8, torch.int16, torch.int64)
    }  # fmt: skip
    yield "quantised", {"q": torch.quantize_per_tensor(torch.rand(10), 0.1, 3, torch.qint8)}
    yield "sparse", {"s": torch.eye(10).to_sparse(), "csr": torch.eye(5).to_sparse_csr()}
    yield "parameters", torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8)).state_dict()
    yield "requires grad", {"p": torch.nn.Parameter(torch.rand(3)), "b": torch.nn.Buffer(KEY)}
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.rand(2, 16)).sum().backward()
    optimizer.step()
    yield "optimizer", {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    yield "many", {f"t{i}": torch.full((i % 7,), float(i)) for i in range(10_000)}


STATES = dict(states())


def same(a, b):
    """Equal in values, types, shapes and strides, and in which tensors share their data."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.layout, a.requires_grad) == (b.dtype, b.shape, b.layout, b.requires_grad)
        if a.layout == torch.strided:
            assert a.stride() == b.stride()
        if a.is_quantized:
            a, b = (torch.stack([t.int_repr().double(), t.dequantize().double()]) for t in (a, b))
        a, b = (t.to_dense() if t.layout != torch.strided else t for t in (a, b))
        if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            a, b = a.view(torch.uint8), b.view(torch.uint8)
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


@pytest.fixture
def arena():
    with Arena(threads=2) as opened:
        yield opened


def image_bytes(arena):
    image = arena.newest()
    content = os.pread(image.descriptor, image.bytes + 1, 0)
    assert len(content) == image.bytes
    return content


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("mmap", [False, True])
def test_torch_load_reads_every_state(arena, name, mmap, monkeypatch):
    # Torch then computes every position by itself and compares it with what the archive says.
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    arena.save(1, STATES[name])
    with config.patch({"load.calculate_storage_offsets": True}):
        same(torch.load(arena.newest().path, mmap=mmap), STATES[name])


@pytest.mark.parametrize("name", STATES)
def test_a_sealed_image_is_a_zip_file_without_a_fault(arena, name):
    arena.save(1, STATES[name])
    arena.seal(arena.newest())
    with zipfile.ZipFile(io.BytesIO(image_bytes(arena))) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert names[:4] == [f"archive/{n}" for n in ("data.pkl", ".format_version", ".storage_alignment", "byteorder")]
    assert names[-1] == "archive/version"


@pytest.mark.parametrize("name", STATES)
def test_the_records_are_those_of_torch_save(arena, name, tmp_path):
    arena.save(1, STATES[name])
    arena.seal(arena.newest())
    torch.save(STATES[name], tmp_path / "archive.pt")
    ours, theirs = (zipfile.ZipFile(f) for f in (io.BytesIO(image_bytes(arena)), tmp_path / "archive.pt"))
    expected = [n for n in theirs.namelist() if n != "archive/.data/serialization_id"]
    assert ours.namelist() == expected
    for record in expected:
        assert ours.read(record) == theirs.read(record), record
        assert ours.getinfo(record).header_offset == theirs.getinfo(record).header_offset


def test_the_same_state_makes_the_same_bytes(arena):
    contents = []
    for step in (1, 2):
        arena.save(step, STATES["optimizer"])
        arena.seal(arena.newest())
        contents.append(image_bytes(arena))
    assert contents[0] == contents[1]


def test_what_torch_writes_we_verify_and_what_was_damaged_we_name(tmp_path):
    path = tmp_path / "archive.pt"
    torch.save(STATES["plain"], path)
    content = bytearray(path.read_bytes())

    def verify():
        library.call("troupe_verify", (ctypes.c_char * len(content)).from_buffer(content), len(content))

    verify()
    content[content.index(b"\x01\x01\x01\x01\x01")] ^= 1  # the int8 tensor
    with pytest.raises(CheckpointError, match="archive/data/1 is damaged"):
        verify()


def test_storages_that_are_shared_stay_shared(arena):
    base = torch.arange(100.0)
    arena.save(1, {"all": base, "part": base[10:20]})
    loaded = arena.load(arena.newest())
    loaded["part"][0] = -1.0
    assert loaded["all"][10] == -1.0
    assert base[10] == 10.0


def test_what_was_loaded_stays_as_it_is_whatever_is_saved_after_it(arena):
    arena.save(1, {"x": torch.full((1 << 20,), 1.0)})
    loaded = arena.load(arena.newest())
    for step in range(2, 7):
        arena.save(step, {"x": torch.full((1 << 20,), float(step))})
        assert arena.newest().step == step
    assert bool((loaded["x"] == 1.0).all())


def mapped_image_at():
    """Where what torch has mapped begins: privately, as no other mapping is."""
    with open("/proc/self/maps") as maps:
        return [int(line.split("-")[0], 16) for line in maps if "memfd:troupe-ckpt-" in line and " rw-p " in line]


def occupied():
    """Mappings that only take up room."""
    with open("/proc/self/maps") as maps:
        return sum(" ---p 00000000 00:00 0" in line for line in maps)


def test_what_is_loaded_lies_where_huge_pages_can_be_mapped(arena):
    state = {"x": torch.arange(10_000_000), "y": torch.ones(3)}
    arena.prepare(state)
    arena.wait_until_prepared()
    arena.save(1, state)
    aligned = 0
    for _ in range(8):
        loaded = arena.load(arena.newest())
        same(loaded, state)
        aligned += any(at % (2 << 20) == 0 for at in mapped_image_at())
        del loaded
    assert aligned  # another thread's mapping may have spoilt one of them, not all


def test_an_image_that_cannot_be_read_leaves_nothing_occupied(arena):
    arena.save(1, {"c": Custom("refused by weights_only", torch.zeros(4_000_000))})
    before = occupied()
    for _ in range(8):
        with pytest.raises(CheckpointError, match="weights_only=False"):
            arena.load(arena.newest())
    assert occupied() <= before


def test_a_state_may_grow_and_shrink(arena):
    for step, elements in enumerate([10, 5_000_000, 100, 6_000_000, 0, 7_000_000]):
        state = {"x": torch.arange(elements, dtype=torch.float32)}
        arena.save(step, state)
        same(torch.load(arena.newest().path), state)


def test_a_prepared_arena_has_its_pages_before_the_first_save(arena):
    state = {"x": torch.zeros(16 << 20, dtype=torch.uint8)}
    arena.prepare(state)
    arena.wait_until_prepared()
    assert arena.images == 2

    def shared_kib():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssShmem:"))

    before = shared_kib()
    assert before >= 2 * 16 * 1024
    arena.save(1, state)
    assert shared_kib() <= before + 64
    same(torch.load(arena.newest().path), state)


def test_a_class_that_only_the_program_knows(arena):
    arena.save(1, {"c": Custom("here", KEY)})
    loaded = arena.load(arena.newest(), weights_only=False)["c"]
    assert loaded.words == "here"
    same(loaded.tensor, KEY)


def test_a_state_that_cannot_be_kept_leaves_the_one_before(arena):
    arena.save(1, {"x": KEY})
    with pytest.raises(ValueError, match="as torch.float32 and as torch.int32"):
        arena.save(2, {"x": KEY, "y": KEY.view(torch.int32)})
    with pytest.raises(CheckpointError, match="needs .* MiB of memory and only .* are left"):
        library.call("troupe_arena_prepare", arena._handle, 1 << 46, None, None, 0)
    assert arena.newest().step == 1
    same(arena.load(arena.newest()), {"x": KEY})


SAVES = '''
import sys, torch
from troupe.checkpoint import Arena
with Arena(threads=2, left=[int(d) for d in sys.argv[1:]]) as arena:
    image = arena.newest()
    state = arena.load(image) if image else {"step": 0, "x": [torch.zeros(1_000_000), torch.zeros(9_000_000)]}
    assert all(bool((x == state["step"]).all()) for x in state["x"]), "a mixture"
    assert image is None or image.step == state["step"]
    while True:
        state = {"step": state["step"] + 1, "x": [x.add(1) for x in state["x"]]}
        arena.save(state["step"], state)
        print(state["step"], flush=True)
'''


def test_whoever_dies_while_saving_leaves_a_whole_image_to_the_next(arena):
    chance = random.Random(1)
    last = 0
    for _ in range(12):
        command = [sys.executable, "-c", SAVES, *map(str, arena.descriptors)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=arena.descriptors) as process:
            assert process.stdout
            said = int(process.stdout.readline())  # a wrong image would have ended it before
            assert said in (last + 1, last + 2)
            while said < last + 1 + chance.randrange(6):
                said = int(process.stdout.readline())
            time.sleep(chance.uniform(0, 0.05))  # any moment of a save
            process.kill()
            last = max([said, *map(int, process.stdout.read().split())])
    image = arena.newest()
    assert image.step in (last, last + 1)
    assert all(bool((x == image.step).all()) for x in arena.load(image)["x"])


def test_descriptors_of_something_else_are_refused(tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        with pytest.raises(CheckpointError, match="holds no table of images"):
            Arena(left=[os.dup(file.fileno()) for _ in range(library.Descriptors._length_)])


def test_how_many_images_there_can_be_is_said():
    with pytest.raises(CheckpointError, match="there can be 2 to 4"):
        Arena(images=1)


# ---- Copy on write ----


@pytest.fixture
def watching():
    try:
        opened = Arena(threads=2, copy_on_write=True)
    except CheckpointError as refused:
        pytest.skip(str(refused))
    with opened:
        yield opened


def written_to_at_once(tensors, value):
    for tensor in tensors:
        tensor.fill_(value)


@pytest.mark.parametrize("name", ["many", "optimizer", "empty"])
def test_copied_behind_the_call_every_state_is_the_same(watching, name):
    watching.save(1, STATES[name])
    watching.wait()
    same(torch.load(watching.newest().path), STATES[name])


def test_the_image_is_of_the_moment_of_the_call_whatever_is_written_after_it(watching):
    generator = torch.Generator().manual_seed(1)
    sizes = [7, 1000, 300_000, 1_000_000, 2_000_001, 16]
    base = torch.rand(3_000_000, generator=generator)
    tensors = [torch.rand(n, generator=generator) for n in sizes] + [base[5:2_000_000]]
    # Its pages do not exist before the first write to them.
    nobody_wrote = mmap.mmap(-1, 12_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    untouched = torch.frombuffer(nobody_wrote, dtype=torch.float32)
    for step in range(1, 5):
        before = [t.clone() for t in tensors]
        watching.save(step, {"t": tensors, "u": untouched})
        written_to_at_once([*reversed(tensors), untouched], -float(step))
        watching.wait()
        loaded = torch.load(watching.newest().path)
        for expected, found in zip(before, loaded["t"], strict=True):
            assert torch.equal(expected, found)
        assert step > 1 or not loaded["u"].any()
        assert all(bool((t == -float(step)).all()) for t in tensors)
        for t in tensors:
            t.copy_(torch.rand(t.numel(), generator=generator))


def test_a_state_that_is_dropped_while_it_is_copied_is_kept(watching):
    for step in range(1, 6):
        state = {"x": torch.full((10_000_000,), float(step))}
        watching.save(step, state)
        del state
        torch.full((10_000_000,), -1.0)  # where the dropped one would have been
    watching.wait()
    assert bool((torch.load(watching.newest().path)["x"] == 5.0).all())


def test_the_kernel_writes_to_what_is_being_copied_as_well(watching, tmp_path):
    (tmp_path / "zeros").write_bytes(bytes(40_000_000))
    state = torch.full((10_000_000,), 3.0)
    watching.save(1, {"x": state})
    with open(tmp_path / "zeros", "rb", buffering=0) as file:
        view = memoryview(state.numpy()).cast("B")
        read = 0
        while read < len(view):
            read += file.readinto(view[read:])
    watching.wait()
    assert bool((torch.load(watching.newest().path)["x"] == 3.0).all())
    assert not state.any()


def test_memory_that_cannot_be_watched_is_copied_at_once(watching, tmp_path):
    torch.save({"x": torch.arange(3_000_000.0)}, tmp_path / "archive.pt")
    mapped = torch.load(tmp_path / "archive.pt", mmap=True)
    watching.save(1, mapped)
    mapped["x"].zero_()
    watching.wait()
    assert torch.equal(torch.load(watching.newest().path)["x"], torch.arange(3_000_000.0))
