"""A script cannot tell by anything that it looks at whether hooks are there: the same rank under torchrun and under ours.

What it looks at are the files of the folder unseen. Each launcher runs it once, both at once.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from launchers import PYTHON, TAG, base_environment, end_tagged

UNSEEN = Path(__file__).with_name("unseen")
CASES = [
    *("flags", "modules_of_the_user", "torches"),
    *("numbers", "graphs", "inductor", "exported", "scripted", "sharded", "mixed", "profiled", "objects", "pickled"),
    *("tracebacks", "warned", "changed_by_the_script", "children", "errors_of_this_file"),
]


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest, launcher: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By `torchrun` and `ours`, and the `page` of the latter."""
    folder, tag = tmp_path_factory.mktemp("unseen"), f"unseen-{os.getpid()}"
    request.addfinalizer(lambda: end_tagged(tag))
    probe = launcher.parent.parent / "tests/page_probe"
    commands = {
        "torchrun": [PYTHON, "-m", "torch.distributed.run", "--standalone", str(UNSEEN / "observe.py"), str(folder / "torchrun")],
        "ours": [str(launcher), "--standalone", str(UNSEEN / "observe.py"), str(folder / "ours"), str(probe)],
    }
    # Each its own folder for what is compiled, and no bytecode: the one that comes later would find the other's.
    runs = {
        name: subprocess.Popen(
            command,
            env={
                **base_environment(),
                TAG: tag,
                "OMP_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TORCHINDUCTOR_CACHE_DIR": str(folder / f"compiled-{name}"),
                "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in commands.items()
    }
    for name, run in runs.items():
        told = run.communicate()[0]
        assert run.returncode == 0, f"{name}: {told}"
    return {name: json.loads((folder / name).read_text()) for name in runs} | {"page": json.loads((folder / "ours.page").read_text())}


def test_every_case_is_compared(seen: dict[str, Any]) -> None:
    assert sorted(seen["torchrun"]) == sorted(CASES)
    assert not {name for name, each in seen["torchrun"].items() if isinstance(each, dict) and "raised" in each}


def test_the_hooks_saw_all_of_it(seen: dict[str, Any]) -> None:
    page = seen["page"]
    assert page["feeds"] & 62 == 62
    assert page["steps_made"] > 20
    silent = {name for name, each in page["phases"].items() if not each["entered"]}
    assert silent == {"user"}
    assert page["communicators"][0]["entered"] > 0


@pytest.mark.parametrize("name", CASES)
def test_a_script_sees_the_same(seen: dict[str, Any], name: str) -> None:
    theirs, mine = (json.dumps(seen[side].get(name), indent=1, sort_keys=True).splitlines() for side in ("torchrun", "ours"))
    differing = list(difflib.unified_diff(theirs, mine, "torchrun", "ours", lineterm="", n=1))
    assert not differing, "\n".join(differing[:60])
