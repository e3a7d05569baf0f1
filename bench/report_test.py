"""The page of figures: what is better, what the picture shows, and that a stale page is noticed."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import report
from chart import Bar, Scale, chart


def figure(ours: float, peer: float | None, limit: float | None = None, more: bool = False) -> dict:
    def summary(value):
        return value and {"runs": 3, "median": value, "p10": value, "p90": value}

    return {
        "name": "a < b", "unit": "ms", "ours": summary(ours), "peer_name": "torchrun", "peer": summary(peer),
        "limit_name": "nothing", "limit": limit, "more_is_better": more,
    }  # fmt: skip


def result(*figures: dict) -> dict:
    return {
        "bench": "launch", "day": "2026-01-01", "measured": "0.1.0 (abc)", "command": "./x bench launch",
        "machine": {"cpu": "2 × x"}, "figures": list(figures),
    }  # fmt: skip


class Ratios(unittest.TestCase):
    def test_a_shorter_time_and_a_higher_rate_are_better(self):
        self.assertEqual(report.better(figure(2, 10)), 5)
        self.assertEqual(report.better(figure(10, 2, more=True)), 5)

    def test_what_has_no_peer_has_no_ratio_and_no_bar(self):
        self.assertIsNone(report.better(figure(2, None)))
        self.assertEqual(report.bars([result(figure(2, None), figure(2, 10, limit=1))]), [
            Bar("a < b", 5, "2.00 ms; torchrun 10.0", 10),
        ])  # fmt: skip


class Chart(unittest.TestCase):
    def test_one_has_a_place_whatever_the_ratios(self):
        for ratios in ([30.0, 200.0], [0.2, 0.5], [1.0], []):
            place = Scale(ratios)
            self.assertTrue(place(place.powers()[0]) <= place(1.0) <= place(place.powers()[-1]))

    def test_it_is_well_formed_and_worse_bars_end_at_one(self):
        drawn = xml.fromstring(chart("t", [Bar("a < b", 10, "x"), Bar("c", 0.1, "y", 2)], "n"))
        rects = {one.get("class"): one for one in drawn.iter("{http://www.w3.org/2000/svg}rect")}
        worse, bar = rects["worse"], rects["bar"]
        self.assertEqual(float(worse.get("x")) + float(worse.get("width")), float(bar.get("x")))


class Page(unittest.TestCase):
    def test_a_page_that_is_not_what_the_results_give_is_told_and_written(self):
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as patches:
            root = Path(directory)
            page, drawn = root / "page.md", root / "chart.svg"
            page.write_text("# P\n\n<!-- figures: -->\n<!-- end of figures -->\n")
            (root / "launch.json").write_text(json.dumps(result(figure(2, 10))))
            for name, value in {"ROOT": root, "KEPT": root, "PAGE": page, "CHART": drawn}.items():
                patches.enter_context(mock.patch.object(report, name, value))
            patches.enter_context(mock.patch.object(report, "benches", lambda: ["launch", "tee"]))
            patches.enter_context(contextlib.redirect_stdout(io.StringIO()))
            runs = []
            for arguments in (["--check"], [], ["--check"]):
                with mock.patch.object(sys, "argv", ["report.py", *arguments]):
                    runs.append(report.main())
            self.assertEqual(runs, [1, 0, 0])
            self.assertIn("| a < b | 2.00 ms (2.00–2.00) | torchrun: 10.0 ms (10.0–10.0) | 5.0 × |", page.read_text())
            self.assertIn("Not measured on this state: `./x bench tee`.", page.read_text())
