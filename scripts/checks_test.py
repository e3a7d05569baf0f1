"""Every rule must fire on the file it exists for, and stay silent on a well-kept one."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import RULES
from checks import schemas, tree, wording
from checks.project import Project

ONCE = "#pragma once\n"
SCHEMA = """@0xc5d8f2f4b1a06e31;
# Conversation: greeting — a comment with field @9 :Text;
struct Hello {
  name @0 :Text;
  rank @1 :Int32 = -1;
  union { a @2 :UInt8; b :group { c @3 :List(Text); } }
  enum Role { node @0; shell @1; }
}
"""
TOPOLOGY = """
sup::one_for_one("node", patience, {
  sup::worker("uplink", [](auto& c) { return start(c, ")"); }),
  // children: job, one per rank
  sup::dynamic("jobs", patience),  // not a node: sup::worker("ghost")
})
"""
KEPT_TREE = {
    "actors/topology.cpp": TOPOLOGY,
    "actors/CMakeLists.txt": "topology.cpp node/uplink/uplink.cpp node/jobs/job/job.cpp",
    "actors/node/uplink/uplink.cpp": "",
    "actors/node/jobs/job/job.cpp": "",
    "actors/README.md": "| `node` | x |\n| `node/uplink` | x |\n| `node/jobs` | x |\n| `node/jobs/job` | x |\n",
}


def findings(texts):
    project = Project.of(texts)
    return [
        str(finding)
        for rule in RULES
        for finding in rule(project)
        if finding.fatal and not (finding.path == schemas.LOCK and schemas.LOCK not in texts)
    ]


# what is wrong -> (files, part of the finding)
OFFENDERS = {
    "a plain struct between actors": (
        {
            "actors/job/job.hpp": ONCE
            + "struct abandon {\n  int why;\n};\nTROUPE_LOCAL_MESSAGE(troupe::abandon)\n",
            "actors/job/job.cpp": '#include "actors/job/job.hpp"\n',
        },
        "actors/job/job.hpp:5: `abandon` is told to other actors",
    ),
    "an alert that names a verb which is not there": (
        {
            "launch/options/shell.cpp": 'constexpr auto verbs = "tree, ps, scale MIN:MAX";\n',
            "launch/CMakeLists.txt": "options/shell.cpp",
            "deploy/monitoring/rules.yml": "description: `actor-shell tree` or `actor-shell --node n1 status`\n",
        },
        "deploy/monitoring/rules.yml:1: actor-shell has no verb 'status'",
    ),
    "an alert on a metric that is not written": (
        {
            "launch/options/shell.cpp": 'constexpr auto verbs = "tree";\n',
            "launch/CMakeLists.txt": "options/shell.cpp",
            "metrics/job.cpp": 'to.histogram("troupe_job_seconds", "…");\n',
            "metrics/CMakeLists.txt": "job.cpp",
            "deploy/monitoring/rules.yml": "expr: troupe_job_seconds_sum > 1\n\nexpr: troupe_job_succes == 0\n",
        },
        "deploy/monitoring/rules.yml:3: no program writes the metric troupe_job_succes",
    ),
    "an upward include": (
        {
            "runtime/base/a.cpp": '#include "messages/b.hpp"\n',
            "messages/b.hpp": ONCE,
            "CMakeLists.txt": "runtime/base/a.cpp",
        },
        "runtime/base/a.cpp:1: runtime/base must not know messages",
    ),
    "a worker's contract that knows what builds the trees": (
        {
            "launch/worker/a.cpp": '#include "launch/wiring/b.hpp"\n',
            "launch/wiring/b.hpp": ONCE,
            "CMakeLists.txt": "launch/worker/a.cpp",
        },
        "launch/worker/a.cpp:1: launch/worker must not know launch/wiring",
    ),
    "the limits of a higher layer": (
        {
            "runtime/os/a.cpp": '#include "actors/limits.hpp"\n',
            "actors/limits.hpp": ONCE,
            "CMakeLists.txt": "runtime/os/a.cpp",
        },
        "runtime/os/a.cpp:1: runtime/os must not know actors/limits.hpp",
    ),
    "limits that know more than limits": (
        {
            "actors/limits.hpp": ONCE + '#include "actors/topology.hpp"\n',
            "actors/topology.hpp": ONCE,
        },
        "actors/limits.hpp:2: actors/limits.hpp must not know actors",
    ),
    "a source outside the folders": (
        {"launch/a.cpp": "int x;\n", "CMakeLists.txt": "launch/a.cpp"},
        "launch/a.cpp: is in none of the folders",
    ),
    "an include that is not written from the root": (
        {"runtime/base/a.cpp": '#include "b.hpp"\n', "CMakeLists.txt": "runtime/base/a.cpp"},
        "written from the repository root",
    ),
    "another actor's core": (
        {
            **KEPT_TREE,
            "actors/node/uplink/uplink.cpp": '\n#include "actors/node/jobs/job/job_core.hpp"\n',
            "actors/node/jobs/job/job_core.hpp": ONCE,
        },
        "uplink.cpp:2: actors/node/jobs/job/job_core.hpp is private",
    ),
    "test equipment in the product": (
        {
            "runtime/os/a.cpp": '#include "tests/x.hpp"\n',
            "tests/x.hpp": ONCE,
            "CMakeLists.txt": "runtime/os/a.cpp",
        },
        "tests/x.hpp is for tests",
    ),
    "CAF outside its place": (
        {"runtime/os/a.cpp": "#include <caf/fwd.hpp>\n", "CMakeLists.txt": "runtime/os/a.cpp"},
        "<caf/fwd.hpp> has no place in runtime/os",
    ),
    "a socket header in an actor": (
        {"actors/a.cpp": "#include <sys/socket.h>\n", "CMakeLists.txt": "actors/a.cpp"},
        "has no place in actors",
    ),
    "a core that reaches CAF through a header": (
        {
            "runtime/sup/a_core.cpp": '#include "runtime/sup/b.hpp"\n',
            "runtime/sup/b.hpp": ONCE + "#include <caf/fwd.hpp>\n",
            "CMakeLists.txt": "runtime/sup/a_core.cpp",
        },
        "a core must not reach CAF: runtime/sup/a_core.cpp -> runtime/sup/b.hpp -> caf/fwd.hpp",
    ),
    "a folder that is no actor": (
        {**KEPT_TREE, "actors/node/ghost/x.md": ""},
        "actors/node/ghost: is in one place but missing as actors/topology.cpp and actors/README.md",
    ),
    "an actor without a row": (
        {
            **KEPT_TREE,
            "actors/README.md": KEPT_TREE["actors/README.md"].replace("| `node/jobs` | x |\n", ""),
        },
        "actors/node/jobs: is in one place but missing as actors/README.md",
    ),
    "a long file": ({"demo/a.py": "\n" * 501}, "demo/a.py: 501 lines; 500 are allowed"),
    "a long core": (
        {"runtime/sup/a_core.cpp": "\n" * 401, "CMakeLists.txt": "runtime/sup/a_core.cpp"},
        "401 lines; 400 are allowed",
    ),
    "a capture of everything by value": (
        {"launch/wiring/a.cpp": "f([=] {});", "CMakeLists.txt": "launch/wiring/a.cpp"},
        "captures are named one by one",
    ),
    "a stored capture by reference": (
        {"runtime/os/a.cpp": "x.then(\n  [&](int) {});", "CMakeLists.txt": "runtime/os/a.cpp"},
        "runtime/os/a.cpp:2: ",
    ),
    "an unordered container in an actor": (
        {"actors/a.cpp": "std::unordered_map<int, int> m;", "CMakeLists.txt": "actors/a.cpp"},
        "`unordered_map`",
    ),
    "a clock in a core": (
        {
            "runtime/link/a_core.cpp": "auto t = std::chrono::steady_clock::now();",
            "CMakeLists.txt": "runtime/link/a_core.cpp",
        },
        "time is an argument",
    ),
    "sleep in an actor": (
        {"actors/a.cpp": "usleep(3);", "CMakeLists.txt": "actors/a.cpp"},
        "nothing waits by sleeping",
    ),
    "a thread in an actor": (
        {"actors/a.cpp": "std::thread t;", "CMakeLists.txt": "actors/a.cpp"},
        "threads belong to runtime/os",
    ),
    "a thread in what is pure about checkpoints": (
        {"ckpt/arena/a.cpp": "std::shared_mutex m;", "CMakeLists.txt": "ckpt/arena/a.cpp"},
        "threads belong to runtime/os",
    ),
    "a file in what is pure about checkpoints": (
        {"ckpt/catalog/a.cpp": "#include <fstream>\n", "CMakeLists.txt": "ckpt/catalog/a.cpp"},
        "<fstream> has no place in a core, as all of ckpt/catalog is",
    ),
    "a system call there": (
        {"ckpt/copies/a.cpp": "#include <sys/mman.h>\n", "CMakeLists.txt": "ckpt/copies/a.cpp"},
        "<sys/mman.h> has no place in ckpt/copies",
    ),
    "a clock there": (
        {
            "ckpt/erasure/a.cpp": "auto t = std::chrono::system_clock::now();",
            "CMakeLists.txt": "ckpt/erasure/a.cpp",
        },
        "time is an argument",
    ),
    "a lock in the store's protocol": (
        {"runtime/tcpstore/a.hpp": ONCE + "#include <mutex>\n"},
        "<mutex> has no place in a core, as all of runtime/tcpstore is",
    ),
    "a long file of the store's protocol": (
        {"runtime/tcpstore/a.cpp": "\n" * 401, "CMakeLists.txt": "runtime/tcpstore/a.cpp"},
        "401 lines; 400 are allowed",
    ),
    "an actor that knows how copies are held": (
        {
            "actors/a.cpp": '#include "ckpt/copies/target_core.hpp"\n',
            "ckpt/copies/target_core.hpp": ONCE,
            "CMakeLists.txt": "actors/a.cpp",
        },
        "actors/a.cpp:1: actors must not know ckpt/copies",
    ),
    "pure code that knows the machine": (
        {
            "ckpt/arena/a.cpp": '#include "runtime/os/memory/b.hpp"\n',
            "runtime/os/memory/b.hpp": ONCE,
            "CMakeLists.txt": "ckpt/arena/a.cpp",
        },
        "ckpt/arena/a.cpp:1: ckpt must not know runtime/os",
    ),
    "a training process that knows the actors": (
        {
            "worker/a.cpp": '#include "actors/b.hpp"\n',
            "actors/b.hpp": ONCE,
            "CMakeLists.txt": "worker/a.cpp",
        },
        "worker/a.cpp:1: worker must not know actors",
    ),
    "a system call where stacks are merged": (
        {"diag/a.cpp": "#include <unistd.h>\n", "CMakeLists.txt": "diag/a.cpp"},
        "<unistd.h> has no place in diag",
    ),
    "unseeded randomness": (
        {"tests/sim/a.cpp": "std::random_device d;", "CMakeLists.txt": "tests/sim/a.cpp"},
        "randomness comes seeded",
    ),
    "an untyped handle": (
        {"actors/a.cpp": "caf::actor a;", "CMakeLists.txt": "actors/a.cpp"},
        "untyped handle",
    ),
    "an endless wait": (
        {"runtime/sup/a.cpp": "caf::infinite", "CMakeLists.txt": "runtime/sup/a.cpp"},
        "every request has a deadline",
    ),
    "a loop over a view that is gone": (
        {
            "launch/wiring/a.cpp": "for (auto x : m.read()->getList()) {}",
            "CMakeLists.txt": "launch/wiring/a.cpp",
        },
        "name the view first",
    ),
    "a kill by anybody": (
        {"actors/a.cpp": "exit_reason::kill", "CMakeLists.txt": "actors/a.cpp"},
        "only a supervisor",
    ),
    "using namespace": (
        {"launch/wiring/a.cpp": "using namespace caf;", "CMakeLists.txt": "launch/wiring/a.cpp"},
        "foreign names are qualified",
    ),
    "main in the engine": (
        {"runtime/os/a.cpp": "int main() {}", "CMakeLists.txt": "runtime/os/a.cpp"},
        "programs are in launch/mains",
    ),
    "printing in an actor": (
        {"actors/a.cpp": "std::cerr << 1;", "CMakeLists.txt": "actors/a.cpp"},
        "only the programs talk to the terminal",
    ),
    "a header without a guard": (
        {
            "launch/wiring/a.hpp": "int x;",
            "launch/wiring/a.cpp": '#include "launch/wiring/a.hpp"',
            "CMakeLists.txt": "launch/wiring/a.cpp",
        },
        "starts with #pragma once",
    ),
    "a TODO without an issue": (
        {"demo/a.py": "# TODO: later"},
        "demo/a.py:1: TODO without an issue",
    ),
    "an id used twice": (
        {"messages/a.capnp": SCHEMA, "messages/b.capnp": SCHEMA},
        "is already used in messages/a.capnp",
    ),
    "a schema without an id": ({"messages/a.capnp": "struct A {}"}, "starts with its file id"),
    "a removed field": (
        {
            "messages/a.capnp": SCHEMA.replace("  name @0 :Text;\n", ""),
            schemas.LOCK: "messages/a.capnp Hello @0 Text name\n",
        },
        "Hello.name @0 was removed",
    ),
    "a field of another type": (
        {"messages/a.capnp": SCHEMA, schemas.LOCK: "messages/a.capnp Hello @0 Data name\n"},
        "a.capnp:4: Hello.name @0 was Data and is now Text",
    ),
    "a field that is not locked": (
        {"messages/a.capnp": SCHEMA, schemas.LOCK: "messages/a.capnp Hello @0 Text name\n"},
        "is behind the schemas",
    ),
    "a conversation nobody describes": (
        {"messages/a.capnp": SCHEMA, "docs/protocol.md": "# Protocol\n"},
        "no section on the conversation greeting",
    ),
    "a conversation without a transcript": (
        {
            "messages/a.capnp": SCHEMA,
            "docs/protocol.md": "## Greeting\n",
            "tests/transcripts/other.txt": "",
        },
        "tests/transcripts does not cover the conversation greeting",
    ),
    "a source nobody builds": (
        {"runtime/base/a.cpp": "", "CMakeLists.txt": "a_b.cpp"},
        "in no CMakeLists.txt",
    ),
    "a header nobody includes": ({"runtime/base/a.hpp": ONCE}, "no file includes this header"),
    "a link that leads nowhere": (
        {"docs/a.md": "see [b](b.md)"},
        "docs/a.md:1: the link to b.md leads nowhere",
    ),
    "a clause without a component, in a comment": (
        {"launch/wiring/a.cpp": "int x; // whoever reads it\n", "CMakeLists.txt": "launch/wiring/a.cpp"},
        "launch/wiring/a.cpp:1: 'whoever' is no component",
    ),
    "in a message": (
        {"launch/wiring/a.cpp": 'f("nobody came");\n', "CMakeLists.txt": "launch/wiring/a.cpp"},
        "launch/wiring/a.cpp:1: 'nobody' is no component",
    ),
    "in a docstring": ({"demo/a.py": '"""\nWho asks is told."""\n'}, "demo/a.py:2: 'Who'"),
    "in a schema": ({"messages/a.capnp": "# Who wrote it.\n"}, "messages/a.capnp:1: 'Who'"),
    "in a script": ({"demo/run": "x=1 # somebody else's\n"}, "demo/run:1: 'somebody'"),
    "on a page": ({"docs/a.md": "A node that leaves\nloses his place.\n"}, "docs/a.md:2: 'his'"),
    "a node that is a who": ({"docs/a.md": "the node who left\n"}, "docs/a.md:1: 'who'"),
}


class Rules(unittest.TestCase):
    def test_each_rule_finds_its_offender(self):
        for what, (texts, expected) in OFFENDERS.items():
            with self.subTest(what):
                self.assertTrue(
                    any(expected in found for found in findings(texts)), f"{findings(texts)}"
                )

    def test_a_well_kept_tree_passes(self):
        kept = {
            **KEPT_TREE,
            "messages/a.capnp": SCHEMA,
            "docs/a.md": "[b](b.md#x), [web](https://example.org), [up](../actors)\n```\n[no](nowhere.md)\n```\n",
            "docs/b.md": "",
            # Words in comments and literals are no offence, and neither is [&] in a call that ends at once.
            # Of copies actors know the port; locks are where the system is.
            "actors/node/uplink/uplink.cpp": '#include "ckpt/copies/replication_host.hpp"\n',
            "ckpt/copies/replication_host.hpp": ONCE,
            "runtime/os/b.cpp": "#include <mutex>\n",
            "runtime/os/a.cpp": '// [=] TODO(#12)\nauto s = "std::random_device"; std::any_of(a, b, [&](int) { return true; });\n',
            # What is to be an actor: decisions that no tree has yet.
            "actors/node/planned/planned_core.cpp": "",
            "CMakeLists.txt": "runtime/os/a.cpp runtime/os/b.cpp actors/node/planned/planned_core.cpp",
        }
        kept[schemas.LOCK] = schemas.rendered(Project.of(kept))
        self.assertEqual(findings(kept), [])

    def test_an_adr_excuses_a_long_file(self):
        self.assertEqual(
            findings({"demo/a.py": "\n" * 501, "docs/adr/1.md": "demo/a.py is long because"}), []
        )


class Wording(unittest.TestCase):
    def found(self, path, text):
        return [finding.text.split("'")[1] for finding in wording.rule(Project.of({path: text}))]

    def test_code_is_no_prose(self):
        for path, text in {
            "a.cpp": '#include "a/who.hpp"\nauto he = who(nobody.his); struct somebody {};\n',
            "a.py": "who = he.whoever(nobody)\n",
            "a.capnp": "struct Who { he @0 :Text; }\n",
            "a/CMakeLists.txt": "add_test(NAME who COMMAND nobody)\n",
            "a.md": "```sh\nwho am i\n```\n`who` and [a link](who.md), http://nobody.org/he\n> Who is this? a citation\n",
        }.items():
            with self.subTest(path):
                self.assertEqual(self.found(path, text), [])

    def test_names_in_comments_are_no_words(self):
        self.assertEqual(
            self.found("a.cpp", "// candidate.who, who_lost(), `who`, who.py, --who, $who, x->his, he::x\n"),
            [],
        )

    def test_people_may_be_who(self):
        self.assertEqual(
            self.found("a.md", "The person who started it, users who wait, an attacker who knows.\n"),
            [],
        )
        self.assertEqual(self.found("a.md", "a node who waits, those who\n"), ["who"] * 2)

    def test_each_place_of_prose_is_read(self):
        cpp = '/* Who */ int a; // he\nauto s = R"(nobody)"; // theirs, whose, whom: shell, hero, whole\n'
        self.assertEqual(self.found("a.cpp", cpp), ["Who", "he", "nobody"])
        self.assertEqual(self.found("a.py", "# he\nx = f'nobody {who}'\n"), ["he", "nobody"])


class Tree(unittest.TestCase):
    def test_nesting_is_read_from_the_calls(self):
        self.assertEqual(
            tree.topology(Project.of(KEPT_TREE)),
            [
                ("node", "one_for_one"),
                ("node/uplink", "worker"),
                ("node/jobs", "dynamic"),
                ("node/jobs/job", "child"),
            ],
        )


class SchemaLock(unittest.TestCase):
    def test_every_kind_of_member_is_remembered(self):
        lines = schemas.rendered(Project.of({"messages/a.capnp": SCHEMA})).splitlines()[1:]
        self.assertEqual(
            lines,
            [
                "messages/a.capnp Hello @0 Text name",
                "messages/a.capnp Hello @1 Int32 rank",
                "messages/a.capnp Hello @2 UInt8 a",
                "messages/a.capnp Hello @3 List(Text) c",
                "messages/a.capnp Hello.Role @0 enumerant node",
                "messages/a.capnp Hello.Role @1 enumerant shell",
            ],
        )


if __name__ == "__main__":
    unittest.main()
