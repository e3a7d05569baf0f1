#include "runtime/os/watch/dump_files.hpp"

#include "diag/stacks/dump_file.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace troupe;

namespace {

namespace fs = std::filesystem;

fs::path new_directory() {
  std::string pattern = fs::temp_directory_path() / "dump_files_XXXXXX";
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  return pattern;
}

diag::process_stacks process(std::uint32_t rank, std::uint32_t world, std::uint64_t pid,
                             const char* role = "") {
  diag::process_stacks p;
  p.rank = rank;
  p.world_size = world;
  p.pid = pid;
  p.role = role;
  return p;
}

std::vector<std::uint64_t> pids_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::uint64_t> pids;
  for (const auto& p : diag::read_dump(std::string(std::istreambuf_iterator<char>(in), {})))
    pids.push_back(p.pid);
  return pids;
}

} // namespace

TEST_CASE("a dump leaves a file for each rank, with its children, and replaces an earlier one's") {
  const auto directory = new_directory();
  const auto into = directory / "root" / "timeline";
  diag::dump_result read;
  read.stacks = {process(0, 4, 10), process(1, 4, 11), process(1, 4, 12, "data loader worker 0"),
                 process(2, 0, 13)};
  REQUIRE(os::keep_dumps(into, read));
  CHECK(pids_in(into / "rank-00000-of-00004.stacks") == std::vector<std::uint64_t>{10});
  CHECK(pids_in(into / "rank-00001-of-00004.stacks") == std::vector<std::uint64_t>{11, 12});
  read.stacks = {process(1, 4, 21)};
  REQUIRE(os::keep_dumps(into, read));
  CHECK(pids_in(into / "rank-00001-of-00004.stacks") == std::vector<std::uint64_t>{21});
  CHECK(std::distance(fs::directory_iterator(into), fs::directory_iterator()) == 2);

  std::ofstream(directory / "file") << "x";
  const auto refused = os::keep_dumps(directory / "file", read);
  REQUIRE(!refused);
  CHECK(refused.error().what.find((directory / "file").string()) == 0);
  fs::remove_all(directory);
}
