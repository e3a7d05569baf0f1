#include "launch/worker/rank_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

std::string content(const std::filesystem::path& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

} // namespace

TEST_CASE("rank files: made with their directory, replaced, and no other file is left") {
  const auto place =
      std::filesystem::temp_directory_path() / fmt::format("troupe_rank_files_{}", ::getpid());
  const auto directory = place / "deep";
  actors::assignment a;
  a.group_rank = 7;
  a.master_index = 2;
  REQUIRE(write_rank_files(directory, a).has_value());
  CHECK(content(directory / "RANK_AFTER_ACC") == "7\n");
  a.group_rank = 1;
  REQUIRE(write_rank_files(directory, a).has_value());
  CHECK(content(directory / "RANK_AFTER_ACC") == "1\n");
  CHECK(content(directory / "MASTER_INDEX") == "2\n");
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 2);
  std::filesystem::remove_all(place);
}

TEST_CASE("rank files that cannot be written, by their names") {
  CHECK(write_rank_files("", {}).has_value());
  const auto refused = write_rank_files("/proc/none", {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("--rank-files: /proc/none/RANK_AFTER_ACC cannot be written: ") ==
        0);
}
