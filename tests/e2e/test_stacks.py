"""actor-stacks as a user runs it: xpu_timer's files beside what its own viewer makes of them, and bad files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

import pytest
from launchers import Launcher

SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "</title><script>alert('&')</script>\x01;"
Frames = tuple[tuple[str, str], ...]
BASE: Frames = (("all_reduce", "dist.py:9"), ("train", "train.py:12"), ("<module>", "train.py:40"))
# Rank 3 of 6 stands elsewhere.
STACKS: dict[int, Frames] = {rank: BASE for rank in range(6)} | {3: (("read", "loader.py:7"), *BASE[1:])}


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(tag: int, value: int | str | bytes) -> bytes:
    """Of a protobuf message."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(content)) + content


def file_of_xpu_timer(frames: Iterable[tuple[str, str]], state: str = "S (sleeping)") -> bytes:
    """As dump_driver.py writes one, with a single thread."""
    in_thread = b"".join(field(7, field(1, name) + field(2, place)) for name, place in frames)
    return field(2, field(4, 4127) + in_thread) + field(3, 1142) + field(11, state)


def write_dumps(folder: Path, stacks: dict[int, Frames], world: int) -> Path:
    for rank, frames in stacks.items():
        (folder / f"{rank:05}-{world:05}.stacktrace").write_bytes(file_of_xpu_timer(frames))
    return folder


def label(ranks: set[int], world: int) -> str:
    """As xpu_timer's viewer folds them."""

    def runs(of: list[int]) -> str:
        text, first = "", 0
        for i, rank in enumerate(of):
            if i + 1 == len(of) or of[i + 1] != rank + 1:
                text += f"{'/' if text else ''}{of[first]}{f'-{rank}' if i > first else ''}"
                first = i + 1
        return text

    return f"@{runs(sorted(ranks))}|{runs(sorted(set(range(world)) - ranks))}"


def as_the_viewer(stacks: dict[int, Frames], world: int) -> set[str]:
    """Its folded lines: the state of each process is a stack of its own."""
    ways = {
        rank: tuple(f"{name}@{place.split(':')[0]}" for name, place in reversed(frames))
        for rank, frames in stacks.items()
    }
    lines = {f"State@S (sleeping){label(set(stacks), world)} 1"}
    for way in ways.values():
        parts = []
        for depth in range(1, len(way) + 1):
            here = {rank for rank, other in ways.items() if other[:depth] == way[:depth]}
            parts.append(way[depth - 1] + label(here, world))
        lines.add(";".join(parts) + " 1")
    return lines


@pytest.fixture
def program(launcher: Launcher) -> Path:
    return Path(launcher.program).with_name("actor-stacks")


def run(program: Path, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=cwd)


def titles(picture: Path) -> list[str]:
    root = ElementTree.parse(picture).getroot()
    return [title.text or "" for title in root.iter(f"{SVG}title")]


def test_the_folded_text_is_that_of_xpu_timers_viewer(program: Path, tmp_path: Path) -> None:
    write_dumps(tmp_path, STACKS, world=8)
    done = run(program, "--path", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 dumps: 6 of 8 ranks (0-5)\nnothing of 2 ranks: 6-7\n" in done.stdout
    assert set((tmp_path / "py_stack").read_text().splitlines()) == as_the_viewer(STACKS, 8)
    assert {p.name for p in tmp_path.iterdir() if not p.name.endswith(".stacktrace")} == {
        *("py_stack", "py_stack.svg", "cpp_stack", "cpp_stack.svg", "stacks.json")
    }


def test_picture_and_json_have_the_rank_that_stands_elsewhere(program: Path, tmp_path: Path) -> None:
    write_dumps(tmp_path, STACKS, world=6)
    assert run(program, cwd=tmp_path).returncode == 0
    (odd,) = [title for title in titles(tmp_path / "py_stack.svg") if title.startswith("read@")]
    assert odd == "read@loader.py@3|0-2/4-5\n1 of 6 ranks, 1 thread, 1 different stack; line 7"
    document = json.loads((tmp_path / "stacks.json").read_text())
    assert (document["version"], document["world_size"], document["absent_ranks"]) == (1, 6, "")
    nodes = document["python"]["nodes"]
    (node,) = [n for n in nodes if n["function"] == "read"]
    assert (node["ranks"], node["threads"], node["ended"], node["lines"]) == ("3", 1, 1, [7])
    assert nodes[node["parent"]]["function"] == "train"
    roots = [n for n in nodes if n["parent"] is None]
    assert [(n["function"], n["source"]) for n in roots if n["ended"]] == [("State", "S (sleeping)")]
    assert len(roots) == 2


def test_names_of_other_programs_stay_text(program: Path, tmp_path: Path) -> None:
    write_dumps(tmp_path, {0: ((MARKUP, MARKUP),)}, world=1)
    assert run(program, "-p", tmp_path, "-o", tmp_path / "out").returncode == 0
    picture = tmp_path / "out/py_stack.svg"
    assert len(list(ElementTree.parse(picture).getroot().iter(f"{SVG}script"))) == 1
    shown = MARKUP.replace("\x01", "\ufffd")
    assert any(title.startswith(f"{shown}@{shown}@0|\n") for title in titles(picture))
    names = [n["function"] for n in json.loads((tmp_path / "out/stacks.json").read_text())["python"]["nodes"]]
    assert MARKUP in names
    state, line = sorted((tmp_path / "out/py_stack").read_text().splitlines(), key=lambda one: "State@" not in one)
    assert (state.count(";"), line.count(";")) == (0, 0)


def test_bad_files_are_named_and_the_rest_comes(program: Path, tmp_path: Path) -> None:
    write_dumps(tmp_path, STACKS, world=8)
    whole = (tmp_path / "00005-00008.stacktrace").read_bytes()
    (tmp_path / "00005-00008.stacktrace").write_bytes(whole[:40])
    (tmp_path / "rank-00006-of-00008.stacks").write_bytes(os.urandom(200))
    os.mkfifo(tmp_path / "rank-00007-of-00008.stacks")
    done = run(program, "--path", tmp_path)
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert len(said) == 3
    assert re.match(r"actor-stacks: 00005-00008\.stacktrace: it is cut off", said[0])
    assert re.match(r"actor-stacks: rank-00006-of-00008\.stacks: ", said[1])
    assert said[2] == "actor-stacks: rank-00007-of-00008.stacks: it is no file"
    assert "nothing of 3 ranks: 5-7\n" in done.stdout


def test_nothing_to_read_and_nowhere_to_write(program: Path, tmp_path: Path) -> None:
    empty = run(program, "--path", tmp_path)
    assert empty.returncode == 1
    assert empty.stderr.startswith(f"actor-stacks: {tmp_path} has no stacks: ")
    missing = run(program, "--path", tmp_path / "no")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    write_dumps(tmp_path, STACKS, world=6)
    (tmp_path / "file").write_text("")
    barred = run(program, "--path", tmp_path, "--output", tmp_path / "file")
    assert (barred.returncode, barred.stderr.count("\n")) == (1, 1)
    assert run(program, "--path").returncode == 2
    assert run(program, "somewhere").returncode == 2


def test_an_output_that_is_written_again_is_replaced(program: Path, tmp_path: Path) -> None:
    write_dumps(tmp_path, STACKS, world=6)
    for _ in range(2):
        assert run(program, "--path", tmp_path).returncode == 0
    assert not list(tmp_path.glob("*.part"))
    assert shutil.which("actor-stacks", path=str(program.parent))
