"""The page of events must miss none: each way to make one is read, and what is unclear refused."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import advice, event_page, event_reader, variables
from checks.blocks import replaced
from checks.cpp_tokens import tokens_of
from checks.event_reader import Unclear
from checks.project import Project


def read(code, path="actors/master/a.cpp"):
    return [
        (e.name, "/".join(e.level), " or ".join(e.texts), [f for f, _ in e.fields])
        for e in event_reader.events_of(Project.of({path: code}))
    ]


class Reading(unittest.TestCase):
    def test_a_note(self):
        code = """void f(effects& out) {
          out.push_back(note{{log::level::info, "node_returned", // a comment, with "node" in it
            fmt::format("node {} is back, "
                        "{{again}}", node),
            {{"node", node}, {"workers", std::int64_t{n}}}}});
        }"""
        self.assertEqual(
            read(code), [("node_returned", "info", "node … is back, {again}", ["node", "workers"])]
        )

    def test_a_call(self):
        code = 'void f() { sup::tell_log(s.ctx, log::level::error, "no_store", o.why); }'
        self.assertEqual(read(code), [("no_store", "error", "…", [])])

    def test_two_events_of_one_condition(self):
        code = """void f() { log_("link", {fresh ? log::level::info : log::level::warning,
          fresh ? "renewed" : "not_renewed", fresh ? std::string("new") : fmt::format("old: {}", x), {}}); }"""
        self.assertEqual(
            read(code), [("renewed", "info", "new", []), ("not_renewed", "warning", "old: …", [])]
        )

    def test_a_text_in_a_variable(self):
        code = """log::event f() {
          auto text = here ? fmt::format("at {}", x) : std::string("elsewhere");
          return {here ? log::level::notice : log::level::info, "placed", std::move(text), {}};
        }"""
        self.assertEqual(read(code), [("placed", "notice/info", "at … or elsewhere", [])])

    def test_a_function_that_makes_events(self):
        code = """log::event about(const key& k, log::level severity, std::string name, std::string text) {
          return {severity, std::move(name), fmt::format("{}: {}", k, text), {{"step", k.step}}};
        }
        void f() { out.push_back(note{about(k, log::level::warning, "late", "it is late")}); }
        void g() { out.push_back(note{about(k, log::level::info, "done", "it is done")}); }"""
        self.assertEqual(
            read(code),
            [
                ("late", "warning", "…: it is late", ["step"]),
                ("done", "info", "…: it is done", ["step"]),
            ],
        )

    def test_an_event_that_is_changed(self):
        code = """log::event f() {
          log::event e{log::level::notice, "started", "all run", {{"generation", g}}};
          e.text = fmt::format("all run after {}", t);
          e.name = "started_again";
          e.fields.emplace_back("took_ms", milliseconds_of(t));
          return e;
        }"""
        self.assertEqual(
            read(code),
            [
                ("started", "notice", "all run after …", ["generation"]),
                ("started_again", "notice", "all run after …", ["generation", "took_ms"]),
            ],
        )

    def test_one_event_for_each_enumerator(self):
        code = """log::level level_of(happening h) { switch (h) {
          case happening::started: return log::level::debug;
          case happening::failed: return log::level::warning; } return log::level::error; }
        const char* words_of(happening h) { switch (h) {
          case happening::started: return "began"; case happening::failed: return "fell"; } return ""; }
        log::event f(const report& what) {
          return {level_of(what.what), std::string("child_") + to_string(what.what),
                  what.who + " " + words_of(what.what), {}};
        }"""
        self.assertEqual(
            read(code),
            [("child_started", "debug", "… began", []), ("child_failed", "warning", "… fell", [])],
        )

    def test_what_is_no_event(self):
        code = """bool f(const log::event& e) {
          if (e.severity == log::level::info) e.severity = log::level::notice;
          return e.severity < log::level::warning;
        }"""
        self.assertEqual(read(code), [])

    def test_what_is_not_understood_is_refused_with_its_line(self):
        for code in (
            "void f() {\n  int x = weigh(log::level::warning); }",
            "void f() {\n  log({log::level::info, names.at(3), text, {}}); }",
            'void f() {\n  log({log::level::info, "a_name", text, some_fields}); }',
            'void f() {\n  log({log::level::info, "a_name", text, {{names[0], 1}}}); }',
        ):
            with self.subTest(code), self.assertRaisesRegex(Unclear, r"^actors/master/a.cpp:2: "):
                read(code)

    def test_strings(self):
        said = [
            t.text for t in tokens_of('R"x(a "b" )x" "\\tc\\"" \'"\' // "d"\n#include "e"\n"f"')
        ]
        self.assertEqual(said, ['a "b" \tc"', "'\"'", "f"])


FIELDS = "| field | type | meaning |\n| `node` | string | a node |\n"
BLOCK = "<!-- events: begin -->\n\n<!-- events: end -->\n"
CODE = 'void f() { log({log::level::info, "here", "is here", {{"node", n}}}); }'


class Page(unittest.TestCase):
    def findings(self, page, code=CODE):
        project = Project.of({"actors/master/a.cpp": code, event_page.PAGE: page})
        return [str(f) for f in event_page.rule(project)]

    def test_a_page_that_is_written_is_current(self):
        project = Project.of({"actors/master/a.cpp": CODE, event_page.PAGE: FIELDS + BLOCK})
        page = event_page.rewritten(project)
        self.assertIn("| `here` | info | `node` | `is here` |", page)
        self.assertEqual(self.findings(page), [])

    def test_an_event_that_the_page_lacks(self):
        self.assertIn(
            "docs/events.md: is not what the sources say; run ./x docs",
            self.findings(FIELDS + BLOCK),
        )

    def test_fields_and_their_meanings(self):
        self.assertIn("does not say what the field `node` is", " ".join(self.findings(BLOCK)))
        self.assertIn(
            "the field `rank` is no integer: it is not there",
            " ".join(self.findings(FIELDS + "| `rank` | integer | x |\n" + BLOCK)),
        )
        self.assertIn(
            "the field `node` is no integer: it is string",
            " ".join(self.findings(FIELDS.replace("string", "integer") + BLOCK)),
        )

    def test_an_event_that_is_not_understood(self):
        found = self.findings(FIELDS + BLOCK, "void f() { g(log::level::info); }")
        self.assertEqual(found, ["actors/master/a.cpp:1: a level that belongs to no event"])

    def test_a_block_is_replaced_and_nothing_else(self):
        page = "a\n<!-- b: begin, by hand never -->\nold\n<!-- b: end -->\nc\n"
        self.assertEqual(
            replaced(page, "b", "new"),
            "a\n<!-- b: begin, by hand never -->\n\nnew\n\n<!-- b: end -->\nc\n",
        )
        with self.assertRaises(ValueError):
            replaced("nothing", "b", "new")


ADVICE = """| message | meaning |
|---|---|
| `node … is gone: …`, `no room` | x |

- `has
  fallen`: x
"""
SAID = """void f() { log({log::level::warning, "node_gone", fmt::format("node {} is "
  "gone: {}", n, why), {}}); fail("no room"); }"""


class Advice(unittest.TestCase):
    def findings(self, said=SAID, python='raise E(f"the {what} has fallen")'):
        files = {"actors/a.cpp": said, "python/troupe/b.py": python, advice.PAGE: ADVICE}
        return [str(f) for f in advice.rule(Project.of(files))]

    def test_a_page_that_quotes_what_is_said(self):
        self.assertEqual(self.findings(), [])

    def test_a_message_that_nothing_says_any_more(self):
        page = advice.PAGE
        self.assertEqual(
            self.findings(SAID.replace("no room", "full")), [f"{page}:3: no program says 'no room'"]
        )
        self.assertEqual(self.findings(python=""), [f"{page}:5: no program says 'has fallen'"])

    def test_a_warning_that_is_not_explained(self):
        more = SAID.replace("node_gone", "node_away").replace('is "\n', 'was "\n')
        found = self.findings(SAID + more)
        self.assertEqual(len(found), 1)
        self.assertIn("does not explain 'node … was gone: …'", found[0])

    def test_a_warning_in_python_that_is_not_explained(self):
        found = self.findings(python='log.info("a"); log.warning("rank %d has fallen", 1)')
        self.assertEqual(found, [])
        found = self.findings(
            python='log.error("rank %d has fallen", 1)\nlog.error("%d is lost", 1)'
        )
        self.assertEqual(len(found), 1)
        self.assertIn("b.py:2: docs/troubleshooting.md does not explain '… is lost'", found[0])

    def test_a_notice_needs_no_advice(self):
        self.assertEqual(
            self.findings(SAID + SAID.replace("warning", "notice").replace("is", "was")), []
        )


class Variables(unittest.TestCase):
    def test_each_of_ours_is_named(self):
        files = {"launch/a.cpp": '\ngetenv("TROUPE_NEW")', variables.PAGE: "`TROUPE_OLD`"}
        found = [str(f) for f in variables.rule(Project.of(files))]
        self.assertEqual(
            found, ["launch/a.cpp:2: docs/configuration.md does not name the variable TROUPE_NEW"]
        )
        files[variables.PAGE] = "`TROUPE_NEW`"
        self.assertEqual(list(variables.rule(Project.of(files))), [])


if __name__ == "__main__":
    unittest.main()
