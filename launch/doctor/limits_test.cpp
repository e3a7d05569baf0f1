#include "launch/doctor/limits.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe::launch::doctor;

namespace {

limits_facts plenty() {
  limits_facts seen;
  seen.open_files = {1'024, 4'096};
  seen.open_files_needed = 78;
  return seen;
}

finding about(const limits_facts& seen, const std::string& subject) {
  const auto all = judge(seen);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&subject](const finding& f) { return f.subject == subject; });
  REQUIRE(found != all.end());
  return *found;
}

} // namespace

TEST_SUITE("doctor: limits") {
  TEST_CASE("without limits there is nothing to say") {
    for (const auto& f : judge(plenty())) {
      CAPTURE(f.subject);
      CHECK(f.how == grade::ok);
      CHECK(f.remedy.empty());
    }
  }

  TEST_CASE("open files: those of the launcher, and those of each worker") {
    auto seen = plenty();
    seen.open_files.before = 64;
    CHECK(about(seen, "open files").how == grade::warning);
    CHECK(about(seen, "open files").found == "78 needed, 4096 allowed; a worker is allowed 64");
    seen.too_few_open_files = "1 worker on this node needs 78 open files";
    CHECK(about(seen, "open files").how == grade::error);
    CHECK(about(seen, "open files").found == seen.too_few_open_files);
  }

  TEST_CASE("processes: the least of what the user and the control group may have") {
    auto seen = plenty();
    seen.workers = 2;
    seen.processes = 160;
    CHECK(about(seen, "processes").how == grade::ok);
    seen.processes = 159;
    CHECK(about(seen, "processes").how == grade::warning);
    seen.above_process_limit = true;
    CHECK(about(seen, "processes").found == "no limit for this user");
    seen.pids_left = 34;
    CHECK(about(seen, "processes").how == grade::warning);
    seen.pids_left = 33;
    CHECK(about(seen, "processes").how == grade::error);
    CHECK(about(seen, "processes").found == "33 are left of pids.max of the control group");
  }

  TEST_CASE("locked memory matters where there is a card that wants it") {
    auto seen = plenty();
    seen.locked = 8u << 20;
    CHECK(about(seen, "locked memory").how == grade::ok);
    seen.has_rdma = true;
    CHECK(about(seen, "locked memory").how == grade::warning);
    seen.locked = std::nullopt;
    CHECK(about(seen, "locked memory").how == grade::ok);
  }

  TEST_CASE("core dumps and the size of files") {
    auto seen = plenty();
    seen.core = 0;
    CHECK(about(seen, "core dumps").how == grade::note);
    seen.core = 1u << 20;
    CHECK(about(seen, "core dumps").how == grade::ok);
    seen.file_size = 1u << 20;
    CHECK(about(seen, "file size").how == grade::warning);
    seen.file_size = 1ull << 40;
    CHECK(about(seen, "file size").how == grade::note);
  }

  TEST_CASE("processes that cannot be found stop the job; a missing control group does not") {
    CHECK(judge(process_facts{}).at(0).how == grade::ok);
    const auto all = judge(process_facts{"", "cannot be read", "this kernel has none"});
    CHECK(all.at(0).how == grade::error);
    CHECK(all.at(0).found == "cannot be read");
    CHECK(all.at(1).how == grade::note);
    CHECK(all.at(1).found == "none for the workers: this kernel has none");
  }

  TEST_CASE("this machine can be looked at, twice, and nothing is left") {
    CHECK(look_at_processes().no_children.empty());
    CHECK(look_at_processes().no_control_group == look_at_processes().no_control_group);
    CHECK(look_at_limits({}, {1'024, 1'024}).open_files_needed == 80);
  }
}
