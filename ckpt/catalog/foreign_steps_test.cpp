#include "ckpt/catalog/foreign_steps.hpp"

#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

/// "tracker: step in directory", of each that is found.
std::string found_in(two_ranks& j) {
  const auto all = foreign_steps(j.storage);
  REQUIRE_MESSAGE(all, all.error().what);
  std::string told;
  for (const auto& one : *all)
    told += one.tracker + ": " + std::to_string(one.step) + " in " + one.directory + "; ";
  return told;
}

} // namespace

TEST_CASE("steps of other tools are found by the trackers that name them") {
  struct row {
    const char* tracker;
    std::string content;
    const char* file;
    const char* told;
  };
  const row rows[] = {
      {"dlrover_latest.txt", "5000", "5000/rank_0.pt", "dlrover_latest.txt: 5000 in 5000; "},
      {"dlrover_latest.txt", " 5000\n", "5000/rank_0.pt", "dlrover_latest.txt: 5000 in 5000; "},
      {"dlrover_latest.txt", "500", "checkpoint-500/rank_0.pt",
       "dlrover_latest.txt: 500 in checkpoint-500; "},
      {"latest_checkpointed_iteration.txt", "2000", "iter_0002000/mp_rank_00/model.pt",
       "latest_checkpointed_iteration.txt: 2000 in iter_0002000; "},
      {"latest", "global_step40\n", "global_step40/mp_rank_00_model_states.pt",
       "latest: 40 in global_step40; "},
      {"latest", "my/tag7", "my/tag7/states.pt", "latest: 7 in my/tag7; "},
      {"dlrover_latest.txt", "0", "0/rank_0.pt", "dlrover_latest.txt: 0 in 0; "},
      // What names nothing that is there.
      {"dlrover_latest.txt", "5000", "4000/rank_0.pt", ""},
      {"latest_checkpointed_iteration.txt", "release", "release/mp_rank_00/model.pt", ""},
      {"dlrover_latest.txt", "", "5000/rank_0.pt", ""},
      {"dlrover_latest.txt", "\n \n", "5000/rank_0.pt", ""},
      {"dlrover_latest.txt", "../5000", "5000/rank_0.pt", ""},
      {"latest", "/etc/5", "etc/5", ""},
      {"latest", ".troupe/steps/5", ".troupe/steps/5x", ""},
      {"latest", "a//5", "a/5", ""},
      {"dlrover_latest.txt", std::string("50\0", 3) + "00", "5000/rank_0.pt", ""},
      {"dlrover_latest.txt", "\xff\xfe garbage", "5000/rank_0.pt", ""},
      {"dlrover_latest.txt", "99999999999999999999999", "5000/rank_0.pt", ""},
      {"dlrover_latest.txt", std::string(100'000, '5'), "5000/rank_0.pt", ""},
      {"latest.txt", "5000", "5000/rank_0.pt", ""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.tracker);
    CAPTURE(r.content.substr(0, 40));
    two_ranks j;
    j.place.files[r.tracker] = r.content;
    j.place.files[r.file] = "theirs";
    const auto before = j.place.files;
    CHECK(found_in(j) == r.told);
    CHECK(j.place.files == before);
  }
}

TEST_CASE("of several tools' steps the latest comes first; Troupe's own are not foreign") {
  two_ranks j;
  CHECK(found_in(j).empty());
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 10));
  CHECK(j.place.files.count("dlrover_latest.txt") == 1);
  CHECK(found_in(j).empty());
  j.place.files["latest"] = "global_step40";
  j.place.files["global_step40/a.pt"] = "theirs";
  j.place.files["latest_checkpointed_iteration.txt"] = "300";
  j.place.files["iter_0000300/a.pt"] = "theirs";
  CHECK(found_in(j) == "latest_checkpointed_iteration.txt: 300 in iter_0000300; "
                       "latest: 40 in global_step40; ");
}

TEST_CASE("a tracker that cannot be read at the moment is an error, and not no tracker") {
  two_ranks j;
  j.place.files["latest"] = "global_step40";
  j.place.files["global_step40/a.pt"] = "theirs";
  j.fail("get", "latest", "input/output error");
  CHECK(error_of(foreign_steps(j.storage)).what == "input/output error");
  j.fail("list", "global_step40", "input/output error");
  CHECK(error_of(foreign_steps(j.storage)).what == "input/output error");
  j.fail("list", ".troupe/steps/40", "input/output error");
  CHECK(error_of(foreign_steps(j.storage)).what == "input/output error");
  // A directory that this user may not list is there.
  j.place.fault = [](const char*, const std::string& name) -> std::optional<error> {
    if (name == "global_step40")
      return error{errc::refused, "permission denied"};
    return std::nullopt;
  };
  CHECK(found_in(j) == "latest: 40 in global_step40; ");
}
