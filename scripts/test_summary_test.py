"""The sums that CI believes in."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_summary import cases, report

DOCTEST = "[doctest] test cases:  3 |  2 passed | 1 failed | 4 skipped\n[doctest] assertions: 9 | 9 passed |"
REPORT = """<testsuite>
  <testcase name="good" status="run"><system-out>hello</system-out></testcase>
  <testcase name="crashed" status="fail"><system-out>[doctest] test cases: 2 | 2 passed | 0 failed | 0 skipped
Segmentation fault</system-out></testcase>
  <testcase name="not built" status="notrun"/>
</testsuite>"""


class Summary(unittest.TestCase):
    def test_the_cases_of_every_framework_are_counted(self):
        for output, ok, expected in (
            (DOCTEST, False, (2, 1)),
            ("Ran 5 tests in 0.05s\n\nOK\n", True, (5, 0)),
            ("Ran 5 tests in 0.05s\n\nFAILED (failures=1, errors=2)\n", False, (2, 3)),
            ("....\n4 passed, 2 warnings in 3.20s\n", True, (4, 0)),
            ("=== 1 failed, 2 passed, 1 error in 61.2s (0:01:01) ===\n", False, (2, 2)),
            ("no framework at all", True, (1, 0)),
        ):
            with self.subTest(output):
                self.assertEqual(cases(output, ok), expected)

    def test_a_crash_after_good_cases_is_a_failure(self):
        self.assertEqual(cases("test cases: 2 | 2 passed | 0 failed | 0 skipped", False), (2, 1))

    def test_a_skipped_python_test_is_a_failure(self):
        self.assertEqual(cases("3 passed, 1 skipped in 0.1s", True), (3, 1))

    def test_what_another_entry_runs_is_no_failure(self):
        self.assertEqual(cases("14 passed, 1 deselected in 5.61s", True), (14, 0))

    def test_a_test_that_did_not_run_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report-x.xml"
            path.write_text(REPORT)
            passed, failed, outputs = report(path)
            self.assertEqual((passed, failed), (3, 2))
            self.assertEqual(list(outputs), ["crashed", "not built"])
            self.assertIn("Segmentation fault", outputs["crashed"])


if __name__ == "__main__":
    unittest.main()
