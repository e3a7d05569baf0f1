#include "launch/wiring/last_checkpoint.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

log::event complete(std::int64_t step, std::string place = "/c") {
  return {log::level::info, "step_complete", "", {{"step", step}, {"place", std::move(place)}}};
}

} // namespace

TEST_CASE("the last complete checkpoint is the one that the saver told last") {
  std::vector<std::string> passed;
  last_checkpoint last;
  const auto sink = last.heard_in(
      [&passed](const std::string&, const log::event& e) { passed.push_back(e.name); });
  CHECK(last.in_words() == "");
  sink("persister", complete(7));
  sink("persister", {log::level::warning, "step_not_complete", "", {{"step", std::int64_t{9}}}});
  CHECK(last.in_words() == "step 7 at /c");
  sink("persister", complete(8));
  CHECK(last.in_words() == "step 8 at /c");
  CHECK(passed == std::vector<std::string>{"step_complete", "step_not_complete", "step_complete"});
}

TEST_CASE("of several directories all are named, whichever was written last") {
  last_checkpoint last;
  const auto sink = last.heard_in([](const std::string&, const log::event&) {});
  sink("persister", complete(29, "/train"));
  sink("persister", complete(1, "/best"));
  CHECK(last.in_words() == "that of each directory: step 1 at /best, step 29 at /train");
  sink("persister", complete(30, "/train"));
  CHECK(last.in_words() == "that of each directory: step 1 at /best, step 30 at /train");
}
