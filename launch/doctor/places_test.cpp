#include "launch/doctor/places.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include <unistd.h>

using namespace troupe::launch;
using namespace troupe::launch::doctor;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t MiB = 1u << 20;

place_facts logs_with(std::uint64_t available) {
  return {"log directory", "/logs", "--log-dir", "", true, available, 256 * MiB};
}

doctor_options writing_to(const std::string& directory) {
  doctor_options o;
  o.checkpoints = directory;
  return o;
}

} // namespace

TEST_SUITE("doctor: places") {
  TEST_CASE("enough, little, none, and no way to write") {
    CHECK(judge(logs_with(256 * MiB)).how == grade::ok);
    CHECK(judge(logs_with(256 * MiB)).found == "/logs, 256.0 MiB free");
    CHECK(judge(logs_with(255 * MiB)).how == grade::warning);
    CHECK(judge(logs_with(1 * MiB)).how == grade::error);
    auto seen = logs_with(256 * MiB);
    seen.is_there = false;
    CHECK(judge(seen).found == "/logs (not there yet), 256.0 MiB free");
    seen.why_not = "Read-only file system";
    CHECK(judge(seen).how == grade::error);
    CHECK(judge(seen).found == "no file can be made in /logs: Read-only file system");
    CHECK(judge(seen).remedy == "--log-dir names another directory");
  }

  TEST_CASE("a directory that is not there yet is looked at where it would be made") {
    const auto folder = fs::temp_directory_path() / ("troupe_places." + std::to_string(::getpid()));
    fs::create_directory(folder);
    const auto all = look_at_places(writing_to(folder / "a/b"));
    REQUIRE(all.size() == 2);
    CHECK(all[0].subject == "temporary files");
    CHECK(all[1].subject == "checkpoints");
    CHECK(all[1].why_not.empty());
    CHECK_FALSE(all[1].is_there);
    CHECK(all[1].available > 0);
    CHECK(fs::is_empty(folder)); // nothing is made, nothing is left
    fs::remove(folder);
  }

  TEST_CASE("what is no directory takes no files") {
    const auto all = look_at_places(writing_to("/dev/null"));
    CHECK(all.at(1).why_not == "/dev/null is no directory");
  }
}
