"""Hooks in every Python that this machine has, from 3.8 on: the words of the interpreter that are exchanged are where they are expected.

PyTorch is not there for most of them, so it is a small one (small_torch).
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import ROOT, Worker
from small_torch.make import make

SCRIPT = """
import sys, gc, io, math, traceback
sys.dont_write_bytecode = True
found = []
sys.settrace(lambda frame, *_: found.append(frame.f_code.co_filename))
import torch
sys.settrace(None)
assert not [each for each in found if "troupe/hooks" in each], set(found)
assert "_troupe_hooks" in sys.modules and not [each for each in sys.path + [repr(sys.meta_path)] if "troupe/hooks" in each]
import torch.distributed.checkpoint as dcp
from at_rest import show
from torch.distributed import distributed_c10d as c10d

first, second = torch.optim.Optimizer(), torch.optim.Optimizer()
for batch in torch.utils.data.dataloader._SingleProcessDataLoaderIter(5):
    assert torch.autograd.backward() == b"gradients"
    first.step()
    second.step()
assert list(torch.utils.data.dataloader._MultiProcessingDataLoaderIter(3)) == [2, 1, 0]
del first
for _ in range(3):
    second.step()
world, _ = c10d._new_process_group_helper(2, [], "0", "default_pg")
part, _ = c10d._new_process_group_helper(1, [1], "1", "part")
assert c10d.all_reduce(7) == c10d.all_reduce(7, None, part) == c10d.all_reduce(tensor=7, group=part) == 7
try:
    c10d.barrier()
except ValueError:
    assert [each.name for each in traceback.extract_tb(sys.exc_info()[2])] == ["<module>", "wrapper", "barrier"]
else:
    raise AssertionError("no error")
dcp.save("state", show)
show("saved")
torch._C.PyTorchFileWriter.__init__(2.0)
show("writes")
torch._C.PyTorchFileWriter.write_end_of_file(2.0)
try:
    torch._C.PyTorchFileReader.__init__("not a number")
except TypeError:
    pass
object.__new__(torch._C.PyTorchFileReader)
from deepspeed.runtime.engine import DeepSpeedEngine
assert type(DeepSpeedEngine._configure_checkpointing) is type(show)
for config, error, last in (({}, ValueError, "_configure_checkpointing"), ({"checkpoint": {"troupe": {}}}, ImportError, "__get__")):
    try:
        DeepSpeedEngine(config)
    except error as seen:
        names = [each.name for each in traceback.extract_tb(seen.__traceback__)]
        assert names[-1] == last and ("__get__" in names) is (error is ImportError), names
    else:
        raise AssertionError("no error")
assert (math.gamma(5.0), repr(exec), type(exec).__name__) == (24.0, "<built-in function exec>", "builtin_function_or_method")
show("done")
"""


def interpreters() -> list[str]:
    candidates = [sys.executable, *map(str, Path("/usr/bin").glob("python3.*")), *map(str, Path.home().glob(".pyenv/versions/*/bin/python"))]
    found = {}
    for each in candidates:
        if Path(each).name.endswith("config"):
            continue
        said = subprocess.run([each, "-c", "import sys, _ctypes; print(sys.version_info[:2] >= (3, 8), sys.version)"], capture_output=True, text=True)
        if said.stdout.startswith("True"):
            found.setdefault(said.stdout, each)
    return list(found.values())


@pytest.mark.parametrize("python", interpreters())
def test_a_script_is_seen_in_each_interpreter(build: Path, tmp_path: Path, python: str) -> None:
    torch = make(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    path = f"{build}/libexec/troupe/hooks:{torch}:{ROOT / 'tests/worker'}"
    rank = Worker(build, [python, "-W", "error", str(script)], {"PYTHONPATH": path}, hooks=True, pass_fds=())
    for line, phase in [("state", "checkpoint"), ("saved", "other"), ("writes", "checkpoint"), ("done", "other")]:
        assert rank.line() == line
        page = rank.seen()
        assert page["phase"] == phase, line
        rank.go()
    # That no PyTorch is loaded is all that may be missing.
    _, errors = rank.process.communicate(timeout=60)
    assert rank.process.returncode == 0, errors
    assert sorted(errors.splitlines()) == [
        "troupe: hooks: hook_files: RuntimeError: the end of a file's reader cannot be looked on",
        "troupe: hooks: libtorch_cpu.so is not loaded",
    ]
    assert (page["steps_made"], page["phases"]["optimizer"]["entered"]) == (8, 13)
    assert (page["phases"]["backward"]["entered"], page["phases"]["input"]["entered"]) == (5, 10)
    rows = {row["name"]: (row["members"], row["entered"], row["left"]) for row in page["communicators"]}
    assert rows == {"default_pg": (2, 2, 2), "part (1)": (1, 2, 2)}
    assert page["feeds"] & 54 == 54
