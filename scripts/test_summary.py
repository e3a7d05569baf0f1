#!/usr/bin/env python3
"""Adds up what a whole test run left behind and prints `N passed, N failed` as its last line.

Before that, what each failed test printed: its end, where the reasons are. A failure on a machine that
is gone by then must tell its cause by itself.

doctest, unittest and pytest report how many cases they ran; those are counted. Any other test is one.
A test that failed without a failed case of its own (a crash, a leak found at exit, a timeout) counts as
one failure. A skipped Python test was not run, so it counts as failed: nothing is skipped in silence.

The table of times comes first: each phase with its seconds, and how many processors it kept busy, then
the slowest tests. A phase that keeps few processors busy can share them; one that keeps all has to do less.

Usage: test_summary.py STEPS_PASSED STEPS_FAILED REPORT_FOLDER
"""

import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

DOCTEST = re.compile(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed")
UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n\n(?:OK|FAILED)(?: \((.*)\))?$", re.M)
PYTEST = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.M)
LINES_SHOWN = 80
SLOWEST_SHOWN = 15
# Of what pytest counts. Deselected is what an entry of ctest leaves to another entry by its command.
NO_FAILURES = ("warning", "warnings", "deselected")
COUNT = re.compile(r"(\d+) (\w+)")


def cases(output: str, ok: bool) -> tuple[int, int]:
    """(passed, failed) of one ctest entry, from what it printed."""
    passed, failed = (1, 0) if ok else (0, 1)
    if found := DOCTEST.findall(output):
        passed = sum(int(p) for p, _ in found)
        failed = sum(int(f) for _, f in found)
    elif unit := UNITTEST.search(output):
        failed = sum(int(n) for n in re.findall(r"=(\d+)", unit[2] or ""))
        passed = int(unit[1]) - failed
    elif pytest := PYTEST.search(output):
        counts = {word: int(number) for number, word in COUNT.findall(pytest[1])}
        passed = counts.pop("passed", 0)
        failed = sum(n for word, n in counts.items() if word not in NO_FAILURES)
    if not ok and failed == 0:
        failed = 1
    return passed, failed


def report(path: Path) -> tuple[int, int, dict[str, str]]:
    """(passed, failed, outputs of failed entries by name) of one report. A test that did not run has failed."""
    passed = failed = 0
    outputs = {}
    for case in xml.parse(path).getroot().iter("testcase"):
        ok = case.get("status") == "run"
        output = case.findtext("system-out") or ""
        p, f = cases(output, ok)
        passed += p
        failed += f
        if f:
            outputs[case.get("name")] = output
    return passed, failed, outputs


def phase_lines(times: str) -> list[str]:
    """The rows of the file that `./x` writes: name, tab, then real, user and system seconds."""
    rows = []
    for line in times.splitlines():
        name, _, seconds = line.partition("\t")
        real, user, system = map(float, seconds.split())
        rows.append((name, real, (user + system) / max(real, 0.01)))
    return [f"  {real:6.0f} s  {busy:3.1f} busy  {name}" for name, real, busy in rows if real >= 1]


def slowest_lines(folder: Path) -> list[str]:
    """The slowest entries of all reports, slowest first."""
    entries = sorted(
        (
            (float(case.get("time") or 0), case.get("name"), path.stem.removeprefix("report-"))
            for path in folder.glob("report-*.xml")
            for case in xml.parse(path).getroot().iter("testcase")
        ),
        reverse=True,
    )
    return [f"  {seconds:6.0f} s  {name} ({step})" for seconds, name, step in entries[:SLOWEST_SHOWN]]


def main(steps_passed: str, steps_failed: str, folder: str) -> int:
    passed, failed = int(steps_passed), int(steps_failed)
    times = Path(folder) / "times.tsv"
    if times.exists():
        print("phases, with the processors that each kept busy:", *phase_lines(times.read_text()), sep="\n")
        print("the slowest tests:", *slowest_lines(Path(folder)), sep="\n")
    for path in sorted(Path(folder).glob("report-*.xml")):
        p, f, outputs = report(path)
        passed += p
        failed += f
        for name, output in outputs.items():
            print(f"failed: {name} ({path.stem.removeprefix('report-')})")
            for line in output.splitlines()[-LINES_SHOWN:]:
                print(f"  | {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
