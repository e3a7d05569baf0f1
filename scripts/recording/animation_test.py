"""What is drawn of a recorded terminal, and when it is seen."""

import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recording.animation import Clock, Recording, animated, self_contained, spans

SVG = "{http://www.w3.org/2000/svg}"


class Rows(unittest.TestCase):
    def test_colours_become_classes_and_the_text_is_escaped(self):
        self.assertEqual(
            spans("a<\x1b[1m\x1b[31mb\x1b[0m\x1b[39m\x1b[49mc&\x1b[92md"),
            'a&lt;<tspan class="b red">b</tspan>c&amp;<tspan class="green">d</tspan>',
        )

    def test_a_background_and_colours_beyond_the_sixteen_are_refused(self):
        for codes in ("41", "38;5;9"):
            with self.assertRaises(ValueError):
                spans(f"\x1b[{codes}mx")

    def test_a_row_has_the_colour_that_the_row_before_left(self):
        self.assertEqual(
            self_contained(["a\x1b[31mb", "c", "\x1b[0md", "e"]), ["a\x1b[31mb", "\x1b[31mc", "\x1b[31m\x1b[0md", "e"]
        )


class Film(unittest.TestCase):
    def recorded(self) -> Recording:
        one = Recording("t", 80, 2)
        one.saw(1.0, 0, ["$ "])
        one.saw(2.0, 0, ["$ ls"])
        one.saw(2.1, 0, ["$ ls"])
        one.saw(30.0, 1, ["$ ls", "a", "b"])
        return one

    def test_only_changes_are_kept(self):
        self.assertEqual(self.recorded().rows, [[(1.0, "$ "), (2.0, "$ ls")], [(30.0, "a")], [(30.0, "b")]])
        self.assertEqual(self.recorded().scrolled, [(30.0, 1)])

    def test_long_pauses_are_shorter_and_order_stays(self):
        clock = Clock({1.0, 2.0, 30.0})
        self.assertEqual([clock.at[moment] for moment in (1.0, 2.0, 30.0)], [0.5, 1.5, 3.0])
        self.assertEqual(clock.percent(30.0), "33.33%")

    def test_without_motion_the_end_is_seen(self):
        drawn = xml.fromstring(animated("title", [self.recorded()]))
        texts = {one.text: one.get("class") for one in drawn.iter(f"{SVG}text")}
        hidden = {text for text, kinds in texts.items() if kinds.endswith(" o")}
        self.assertEqual(hidden, {"$ "})
        [moved] = drawn.iter(f"{SVG}g")
        self.assertEqual(moved.get("style"), "transform:translateY(-18px)")
