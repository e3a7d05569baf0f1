#include "launch/wiring/narrative.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

std::vector<std::string> told_first(const std::vector<std::string>& arguments,
                                    const std::string& log_directory = {}) {
  machine_facts machine;
  machine.fresh_id = "8f3a";
  machine.pythons.on_path = "/usr/bin/python3";
  std::vector<std::string> texts;
  const auto o = std::get<launcher_options>(parse_launcher(arguments, machine));
  for (const auto& line :
       first_lines(o, "2026-11-25 (UTC+01:00)", log_directory, {"127.0.0.1", 29400}))
    texts.push_back(line.text);
  // The command to paste comes last.
  CHECK(texts.back() == "to look into the job: actor-shell tree --master 127.0.0.1:29400");
  texts.pop_back();
  return texts;
}

using lines = std::vector<std::string>;

} // namespace

TEST_CASE("the first line says which job it is, how large, and what runs it") {
  CHECK(told_first({"t.py"}) == lines{"job 8f3a, 2026-11-25 (UTC+01:00): 1 node, 1 worker on this "
                                      "one; /usr/bin/python3 (PATH)"});
  CHECK(told_first({"--no-python", "--nproc-per-node=2", "prog"}).front() ==
        "job 8f3a, 2026-11-25 (UTC+01:00): 1 node, 2 workers on this one");
  CHECK(told_first({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=h:1", "--rdzv-id=x",
                    "--python=/opt/python", "t.py"}) ==
        lines{"job x, 2026-11-25 (UTC+01:00): 2 to 4 nodes, 1 worker on this one; /opt/python "
              "(--python)"});
}

TEST_CASE("where files were asked for, the first lines say where they are") {
  CHECK(told_first({"t.py"}, "/logs/8f3a_x1").back() == "the workers' files are in /logs/8f3a_x1");
}

TEST_CASE("the last line says how long it took and what it cost") {
  using namespace std::chrono_literals;
  CHECK(last_line({true, 0, 75s, 0, "", ""}).text == "succeeded after 75.0 s");
  CHECK(last_line({false, 0, 5s, 1, "/logs/x", "step 7 at /c"}).text ==
        "failed after 5.0 s, with 1 restart; the last complete checkpoint is step 7 at /c; "
        "the workers' files are in /logs/x");
  CHECK(last_line({false, 2, 5s, 0, "", ""}).text == "stopped by signal 2 (SIGINT) after 5.0 s");
}

TEST_CASE("the first lines come once, when the node has its link") {
  lines told;
  const auto to = [&told](const std::string& from, const log::event& e) {
    told.push_back(from + ": " + e.name);
  };
  const auto sink = told_once_linked(to, "launcher", {{log::level::notice, "job", "", {}}});
  sink("uplink", {log::level::notice, "waiting_for_master", "", {}});
  CHECK(told == lines{"uplink: waiting_for_master"});
  sink("uplink", {log::level::info, "link_established", "", {}});
  sink("uplink", {log::level::info, "link_established", "", {}});
  CHECK(told == lines{"uplink: waiting_for_master", "launcher: job", "uplink: link_established",
                      "uplink: link_established"});
}
