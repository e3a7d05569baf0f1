#include "launch/shell/jobs.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace troupe;
using namespace troupe::launch;
using namespace std::chrono_literals;

namespace {

sup::node_report tree_that_says(const std::string& phase) {
  sup::node_report tree, planner;
  tree.uptime = 90s;
  planner.name = "recovery";
  planner.phase = phase;
  tree.children = {sup::node_report{}, planner};
  return tree;
}

} // namespace

TEST_CASE("jobs are listed in one order, with what their planners say") {
  const auto b = job_in("bert", {"127.0.0.1", 5}, tree_that_says("generation 2 runs on 4 nodes"));
  const auto a = job_in("a\x1b", {"127.0.0.1", 29400}, tree_that_says(""));
  CHECK(jobs_text({b, a}, 0) == "JOB    MASTER           UP   DOES\n"
                                "a\\x1b  127.0.0.1:29400  90s  its planner has not answered\n"
                                "bert   127.0.0.1:5      90s  generation 2 runs on 4 nodes\n");
  CHECK(jobs_text({b}, 40) == "JOB   MASTER       UP   DOES\n"
                              "bert  127.0.0.1:5  90s  generation 2 ru…\n");
  CHECK(jobs_text({}, 0) == "no job of this user has its master on this machine\n");
}

TEST_CASE("the same for programs") {
  CHECK(jobs_json({job_in("bert", {"127.0.0.1", 5}, tree_that_says("waits"))}) ==
        R"({"jobs":[{"job":"bert","master":"127.0.0.1:5","uptime_ms":90000,"doing":"waits"}]})");
  CHECK(jobs_json({}) == R"({"jobs":[]})");
}
