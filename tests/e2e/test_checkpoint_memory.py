"""What workers save into memory outlives them, and their node supervisor, and is gone with the launcher."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

from conftest import Start
from launchers import ROOT, until
from test_crashes import kill_supervisor

PACKAGE = {"PYTHONPATH": str(ROOT / "python")}

# Each life goes on where the one before it was killed: rank 1 in the middle of a save.
TRAINS = """
import json, os, sys, threading, time
from pathlib import Path
import torch
from troupe.checkpoint import Arena

place, rank, life = Path(sys.argv[1]), int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
arena = Arena.of_this_worker(threads=1)
image = arena.newest()
state = arena.load(image) if image else {"step": 0, "x": torch.zeros(4_000_000)}
whole = bool((state["x"] == state["step"]).all())
record = {"pid": os.getpid(), "step": state["step"], "whole": whole, "image": image and image.step}
part = place / f"{life}-{rank}.part"
part.write_text(json.dumps(record))
for _ in range(5):
    state = {"step": state["step"] + 1, "x": state["x"] + 1}
    arena.save(state["step"], state)
part.rename(place / f"{life}-{rank}.json")
if life < 2:
    while rank == 0:
        time.sleep(0.01)
    while True:
        arena.save(state["step"], state)
"""


def lives(directory: Path, life: int) -> list[dict]:
    files = [directory / f"{life}-{rank}.json" for rank in range(2)]
    until(lambda: all(f.exists() for f in files), 60, f"life {life}")
    return [json.loads(f.read_text()) for f in files]


def memory_of_images(process: int | str = "[0-9]*") -> set[int]:
    """Memory without a name, of one process or of all that this one can see."""
    found = set()
    for directory in Path("/proc").glob(str(process)):
        with contextlib.suppress(OSError):
            for entry in (directory / "fd").iterdir():
                if os.readlink(entry).startswith("/memfd:troupe-ckpt"):
                    found.add(entry.stat().st_ino)
    return found


def test_every_life_goes_on_from_the_image_of_the_one_before(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    run = start([str(script), str(tmp_path)], procs=2, restarts=2, environment=PACKAGE)
    first = lives(tmp_path, 0)
    assert [one["image"] for one in first] == [None, None]
    os.kill(first[1]["pid"], signal.SIGKILL)

    second = lives(tmp_path, 1)
    assert [(one["image"], one["step"], one["whole"]) for one in second] == [(5, 5, True)] * 2
    kill_supervisor(run)  # the memory is its keeper's
    os.kill(second[1]["pid"], signal.SIGKILL)

    third = lives(tmp_path, 2)
    own = memory_of_images(run.launchers[0].pid)
    assert own
    assert [(one["image"], one["step"], one["whole"]) for one in third] == [(10, 10, True)] * 2
    assert run.wait(60) == [0], run.err()
    assert run.leftovers() == []
    assert not memory_of_images() & own
