#include "launch/run_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe::launch;
namespace fs = std::filesystem;

TEST_SUITE("run_directory") {
  TEST_CASE("a temporary one goes with the run, unless a worker has written something") {
    for (const auto* file : {"0/stdout.log", "0/error.json", "filtered_stdout.log"}) {
      CAPTURE(file);
      const auto run = run_directory::make("", "job");
      REQUIRE(run);
      const auto attempt = fs::path(run->for_workers()) / "attempt_0";
      fs::create_directories(attempt / "0");
      std::ofstream(attempt / file) << "x";
      run->tidy_up();
      CHECK(fs::exists(attempt / file));
      fs::resize_file(attempt / file, 0);
      std::ofstream(run->journal()) << "x";
      run->tidy_up();
      CHECK_FALSE(fs::exists(run->for_workers()));
    }
  }

  TEST_CASE("one that the user named stays") {
    const auto logs = fs::temp_directory_path() / ("troupe_logs." + std::to_string(::getpid()));
    const auto run = run_directory::make(logs.string(), "a/b");
    REQUIRE(run);
    run->tidy_up();
    CHECK(fs::exists(run->for_workers()));
    CHECK(fs::path(run->for_workers()).filename().string().rfind("a_b_", 0) == 0);
    fs::remove_all(fs::path(run->for_workers()).parent_path());
  }

  TEST_CASE("a file in its place is named") {
    const auto file =
        fs::temp_directory_path() / ("troupe_no_directory." + std::to_string(::getpid()));
    std::ofstream(file) << "x";
    const auto run = run_directory::make(file.string(), "job");
    REQUIRE_FALSE(run);
    CHECK(run.error().what.find(file.string()) != std::string::npos);
    fs::remove(file);
  }
}
