#include "launch/wiring/outcome_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace troupe;
using launch::outcome_file;

namespace {

actors::assignment place(std::uint64_t which, local_rank local, global_rank rank) {
  actors::assignment a;
  a.which = generation{which};
  a.local = local;
  a.rank = rank;
  return a;
}

} // namespace

TEST_CASE("the outcome names the ranks of this node's last generation") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("troupe_outcome_file_test." + std::to_string(::getpid()));
  outcome_file file(path.string());
  file.assigned(place(1, 0, 0), "");
  file.assigned(place(1, 1, 1), "");
  file.assigned(place(1, 2, 2), "");
  file.assigned(place(2, 1, 5), "");
  file.assigned(place(2, 0, 4), "");
  REQUIRE(file.write("node-0", {true, "", {}}));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() == R"({"success":true,"reason":"","generation":2,"ranks":[4,5],"failures":[]})"
                      "\n");
  std::filesystem::remove(path);
}

TEST_CASE("an outcome that cannot be written is an error that names the option and the file") {
  const auto written = outcome_file("/nowhere/outcome.json").write("node-0", {true, "", {}});
  REQUIRE(!written);
  CHECK(written.error().what.find("--outcome-file /nowhere/outcome.json") == 0);
}
