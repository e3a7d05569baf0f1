"""What programs write into pages, and only that."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from pages import with_part

PAGE = "# Title\n\n<!-- one: by a -->\nold\n<!-- end of one -->\nprose\n<!-- two: by b -->\n<!-- end of two -->\n"


class Parts(unittest.TestCase):
    def test_one_part_is_written_and_the_rest_stays(self):
        page = with_part(PAGE, "two", r"new \1 text")
        self.assertEqual(page, PAGE.replace("<!-- two: by b -->\n", "<!-- two: by b -->\n\nnew \\1 text\n\n"))
        self.assertEqual(with_part(page, "two", r"new \1 text"), page)

    def test_a_page_without_the_part_or_with_two_is_refused(self):
        for page in (PAGE.replace("one", "1"), PAGE + PAGE):
            with self.assertRaises(ValueError):
                with_part(page, "one", "x")
