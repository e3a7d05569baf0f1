#include "runtime/os/watch/crash_files.hpp"

#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/fault_place.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace troupe;
using namespace troupe::os;

namespace {

class directory {
 public:
  directory() {
    std::string pattern = std::filesystem::temp_directory_path() / "crash_files_XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~directory() { std::filesystem::remove_all(path); }

  std::string path;
};

std::string content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

diag::dump_result one_read() {
  diag::process_stacks s;
  s.pid = 4711;
  diag::thread_stacks main, hit;
  main.id = 4711;
  hit.id = 4713;
  hit.native = {
      {"poll", "libc.so.6", 0}, {diag::signal_frame, "libc.so.6", 0}, {"strlen", "libc.so.6", 0}};
  hit.python = {{"parse", "crash.py", 12}};
  s.threads = {main, hit};
  diag::dump_result read;
  read.stacks.push_back(s);
  return read;
}

} // namespace

TEST_CASE("stacks of a crash are kept for people and for the merge, and the thread that was hit is "
          "shown") {
  const directory to;
  const auto reports =
      keep_crashes(to.path, 7, {{2, 4, 4711, 4713}, {3, 4, 4712, 4712}}, one_read(), 1s);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].rank == 2);
  CHECK(reports[0].place == "strlen() at crash.py:12 (parse)");
  CHECK(reports[0].file == to.path + "/fatal/7/rank-00002-of-00004.txt");
  CHECK(content(reports[0].file).find("Process 4711, rank 2 of 4\n") == 0);
  CHECK(content(reports[0].file).find("    parse (crash.py:12)\n") != std::string::npos);
  const auto again = diag::read_dump(content(to.path + "/fatal/7/rank-00002-of-00004.stacks"));
  REQUIRE(again.size() == 1);
  CHECK(again[0].rank == 2);
  CHECK(again[0].world_size == 4);
  CHECK(again[0].threads.size() == 2);
  CHECK(reports[1].rank == 3);
  CHECK(reports[1].file == "");
  CHECK(reports[1].why == "they did not come within 1.0 s");
}

TEST_CASE("where they cannot be kept the place is told all the same") {
  const directory to;
  std::ofstream(to.path + "/fatal") << "a file";
  for (const auto& where : {to.path, std::string()}) {
    const auto reports = keep_crashes(where, 7, {{2, 4, 4711, 4713}}, one_read(), 1s);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].place == "strlen() at crash.py:12 (parse)");
    CHECK(reports[0].file == "");
    CHECK(reports[0].why != "");
  }
}

TEST_CASE("a thread that the process does not have is none") {
  const directory to;
  const auto reports = keep_crashes(to.path, 7, {{2, 4, 4711, 9}}, one_read(), 1s);
  CHECK(reports[0].place == "");
  CHECK(reports[0].file != "");
}
