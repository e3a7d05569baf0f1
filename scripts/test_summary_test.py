"""The sums that CI believes in."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_summary import cases, phase_lines, report, slowest_lines

DOCTEST = "[doctest] test cases:  3 |  2 passed | 1 failed | 4 skipped\n[doctest] assertions: 9 | 9 passed |"
REPORT = """<testsuite>
  <testcase name="good" status="run" time="2.5"><system-out>hello</system-out></testcase>
  <testcase name="crashed" status="fail" time="61.2"><system-out>[doctest] test cases: 2 | 2 passed | 0 failed | 0 skipped
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

    def test_the_table_of_times_names_idle_phases_and_the_slowest_tests(self):
        self.assertEqual(
            phase_lines("build release\t100.000 180.500 19.500\ncheck\t0.400 0.300 0.100\n"),
            ["     100 s  2.0 busy  build release"],
        )
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "report-test-asan.xml").write_text(REPORT)
            self.assertEqual(
                slowest_lines(Path(folder))[:2],
                ["      61 s  crashed (test-asan)", "       2 s  good (test-asan)"],
            )


if __name__ == "__main__":
    unittest.main()
