#include "launch/shell/tree_lines.hpp"

#include "launch/shell/columns.hpp"
#include "launch/shell/testing/job_tree.hpp"
#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

namespace {

std::string plain(const sup::node_report& tree, std::size_t width) {
  return "\n" + painted(lay_out(tree, width), false);
}

} // namespace

TEST_CASE("lines: a failure's story fits 80 columns; the dead rank and its reason are seen") {
  CHECK(plain(job_after_a_kill(), 80) == R"(
master                  running    12m  restarts 0/5
├ job                   running    12m  restarts 1/3, generation 8 runs on 2 no…
│ ├ charged to node-1   restarts 1/3
│ ├ generation 7        ended 3s ago: node-1: rank 3: signal 9 (SIGKILL)
│ └ generation 8        running     3s
│   ├ member node-0     running     3s  2 workers run
│   └ member node-1     running     3s  2 workers run
├ sessions              running    12m  restarts 0/5
│ ├ 2 ended well        session 4, session 5
│ ├ node-0              running    12m  node node-0 at 127.0.0.1:40001
│ │ └ node_supervisor   silent: did not answer within 2.0 s
│ └ node-1              running    12m  node node-1 at 127.0.0.1:40002
│   └ node_supervisor   running    12m  restarts 0/5
│     ├ worker_group    running    12m
│     │ ├ generation 7  ended 3s ago: rank 3: signal 9 (SIGKILL)
│     │ └ generation 8  running     3s
│     │   ├ rank 2      running     3s  pid 4711
│     │   └ rank 3      starting 412ms  pid 4712
│     └ uplink          running    12m  ended 41s ago: actor_threw, 3 messages …
└ gateway               running    12m  listening on 127.0.0.1:29400
)");
}

TEST_CASE("lines: the newest master's generations go without its term, an older one's do not") {
  const auto over = [](generation g) { return tree_row(in_full(g), 0s).in("ended").ended(2s); };
  const auto first = next_generation({}, term{5}), second = next_generation(first, term{7});
  auto tree = tree_row("job", 1s);
  tree.above({over(first), over(second), tree_row(in_full(second.next()), 1s)});
  CHECK(plain(tree, 0) == R"(
job             running     1s
├ 2 ended well  generation 1 of term 5, generation 2
└ generation 3  running     1s
)");
  CHECK(plain(tree_row("generation 1", 1s), 0) == "\ngeneration 1  running     1s\n");
}

TEST_CASE("lines: no line is wider than the terminal, however narrow; every row has its line") {
  for (const std::size_t width : {200, 80, 60, 40, 20, 12, 1})
    for (const auto& line : lay_out(job_after_a_kill(), width))
      if (columns_of(line.branches) <= width)
        CHECK_MESSAGE(columns_of(line.branches) + columns_of(line.text) <= width, line.text);
  CHECK(lay_out(job_after_a_kill(), 0).size() == lay_out(job_after_a_kill(), 20).size());
}

TEST_CASE("lines: what a living row says, trouble first") {
  struct row {
    tree_row of;
    const char* text;
  };
  auto crowded = tree_row("a", 1s, "works");
  crowded.mailbox = 1;
  crowded.unexpected = 2;
  auto restarted = tree_row("a", 1s, "works").ended(2s, "actor_threw");
  restarted.restarts = 1;
  auto long_ago = tree_row("a", 5h, "works").ended(5h, "actor_threw");
  long_ago.restarts = 2;
  for (const row& r :
       {row{tree_row("a", 1s, "works"), "a  running     1s  works"},
        row{tree_row("a", 1s), "a  running     1s"},
        row{tree_row("a", 1s).in("stopping"), "a  stopping    1s"},
        row{crowded, "a  running     1s  2 unexpected messages, 1 message waits, works"},
        row{restarted, "a  running     1s  ended 2s ago: actor_threw, works, restarted 1 time"},
        row{long_ago, "a  running     5h  works, restarted 2 times, ended 5h ago: actor_threw"},
        row{tree_row("a", 1s).budget(1, 3), "a  running     1s  restarts 1/3"},
        row{tree_row("a", 0s).in("ended").ended(90s), "a  ended 90s ago"},
        row{tree_row("a", 0s).in("down").ended(90s), "a  ended 90s ago"},
        row{tree_row("a", 0s, "x").in("down").ended(1s, "y"), "a  down: x, ended 1s ago: y"},
        row{tree_row("a", 0s, "no link: reset").in("silent"), "a  silent: no link: reset"}})
    CHECK(plain(r.of, 0) == "\n" + std::string(r.text) + "\n");
}

TEST_CASE("lines: text of others cannot move the cursor, reorder or break a line") {
  CHECK(plain(tree_row("a\x1b[2J", 1s, "x\ny\u202e"), 0) ==
        "\na\\x1b[2J  running     1s  x\\ny\\u202e\n");
}

TEST_CASE("lines: colours say how a row is, and only where they are wanted") {
  const std::vector<tree_line> lines{{"├ ", "a", mood::calm}, {"└ ", "b", mood::bad}};
  CHECK(painted(lines, false) == "├ a\n└ b\n");
  CHECK(painted(lines, true) == "\x1b[2m├ \x1b[0ma\x1b[0m\n\x1b[2m└ \x1b[0m\x1b[31mb\x1b[0m\n");
}

TEST_CASE("lines: spans of time in five columns") {
  struct row {
    duration d;
    const char* text;
  };
  for (const row& r : {row{0s, "0ms"}, row{999ms, "999ms"}, row{1999ms, "1s"}, row{119s, "119s"},
                       row{120s, "2m"}, row{119min, "119m"}, row{2h, "2h"}, row{47h, "47h"},
                       row{48h, "2d"}, row{24h * 9999, "9999d"}})
    CHECK(short_time(r.d) == r.text);
}
