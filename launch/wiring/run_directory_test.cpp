#include "launch/wiring/run_directory.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe::launch;
namespace fs = std::filesystem;

TEST_SUITE("run_directory") {
  TEST_CASE("a temporary one goes with the run, unless a worker has written something") {
    for (const auto* file : {"0/stdout.log", "0/error.json", "filtered_stdout.log"}) {
      CAPTURE(file);
      const auto run = run_directory::make("", "job", "n/1");
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

  TEST_CASE(
      "what a killed run has left is removed by the next, unless a worker has left something") {
    const auto left_by = [](bool with_output) {
      int pipe[2];
      REQUIRE(::pipe(pipe) == 0);
      const auto pid = ::fork();
      if (pid == 0) {
        const auto run = run_directory::make("", "killed", "n/1");
        const auto path = run ? fs::path(run->for_workers()) : fs::path();
        std::ofstream(run->journal()) << "x";
        if (with_output)
          std::ofstream(path / "stdout.log") << "x";
        (void)!::write(pipe[1], path.c_str(), path.string().size());
        ::raise(SIGKILL);
      }
      ::waitpid(pid, nullptr, 0);
      ::close(pipe[1]);
      char name[4'096] = {};
      REQUIRE(::read(pipe[0], name, sizeof(name) - 1) > 0);
      ::close(pipe[0]);
      return fs::path(name);
    };
    const auto make_old = [](const fs::path& directory) {
      fs::last_write_time(directory, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    };
    const auto abandoned = left_by(false), output = left_by(true);
    const auto unclaimed = abandoned.parent_path() / "troupe_unclaimed_aB3xyZ",
               foreign = abandoned.parent_path() / "troupe_of-the-user",
               being_made = abandoned.parent_path() / "troupe_being-made_aB3xyZ";
    for (const auto& directory : {unclaimed, foreign, being_made})
      fs::create_directory(directory);
    std::ofstream(unclaimed / ".owner.new") << "";
    const auto living = run_directory::make("", "living", "n/1");
    REQUIRE(living);
    for (const auto& directory : {unclaimed, foreign, output, fs::path(living->for_workers())})
      make_old(directory);
    run_directory::remove_abandoned();
    CHECK_FALSE(fs::exists(abandoned));
    CHECK(fs::exists(output));
    CHECK_FALSE(fs::exists(unclaimed));
    CHECK(fs::exists(foreign));
    CHECK(fs::exists(being_made));
    CHECK(fs::exists(living->for_workers()));
    for (const auto& directory : {output, foreign, being_made})
      fs::remove_all(directory);
    living->tidy_up();
  }

  TEST_CASE("runs that tidy up at the same time do not disturb each other") {
    const auto left = fs::temp_directory_path() / ("troupe_left." + std::to_string(::getpid()));
    for (int i = 0; i < 40; ++i) {
      const auto directory = fs::path(left.string() + "." + std::to_string(i));
      for (const auto* inside : {"a/b/c", "d/e/f", "g/h/i"})
        fs::create_directories(directory / inside);
      std::ofstream(directory / ".owner") << "";
      fs::last_write_time(directory, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    }
    std::vector<pid_t> runs;
    for (int i = 0; i < 8; ++i)
      if (runs.push_back(::fork()); runs.back() == 0) {
        try {
          const auto run = run_directory::make("", "race", "n/1");
          run_directory::remove_abandoned();
          if (run)
            run->tidy_up();
          ::_exit(run ? 0 : 1);
        } catch (const std::exception&) {
          ::_exit(2);
        }
      }
    for (const auto pid : runs) {
      int status = -1;
      CHECK(::waitpid(pid, &status, 0) == pid);
      CHECK(status == 0);
    }
  }

  TEST_CASE("one that the user named stays") {
    const auto logs = fs::temp_directory_path() / ("troupe_logs." + std::to_string(::getpid()));
    const auto run = run_directory::make(logs.string(), "a/b", "n/1");
    REQUIRE(run);
    run->tidy_up();
    CHECK(fs::exists(run->for_workers()));
    // <job>_<date>-<time>_<node>_<random>
    const auto name = fs::path(run->for_workers()).filename().string();
    CHECK(std::regex_match(name, std::regex("a_b_[0-9]{8}-[0-9]{6}_n_1_[A-Za-z0-9]{6}")));
    CHECK(fs::read_symlink(logs / "latest") == name);
    const auto next = run_directory::make(logs.string(), "a/b", "n/1");
    REQUIRE(next);
    CHECK(fs::read_symlink(logs / "latest") == fs::path(next->for_workers()).filename());
    fs::remove_all(fs::path(run->for_workers()).parent_path());
  }

  TEST_CASE("what a person calls latest stays") {
    const auto logs = fs::temp_directory_path() / ("troupe_latest." + std::to_string(::getpid()));
    fs::create_directories(logs / "latest/mine");
    REQUIRE(run_directory::make(logs.string(), "a", "n"));
    CHECK(fs::exists(logs / "latest/mine"));
    fs::remove_all(logs);
  }

  TEST_CASE("a file in its place is named") {
    const auto file =
        fs::temp_directory_path() / ("troupe_no_directory." + std::to_string(::getpid()));
    std::ofstream(file) << "x";
    const auto run = run_directory::make(file.string(), "job", "n/1");
    REQUIRE_FALSE(run);
    CHECK(run.error().what.find(file.string()) != std::string::npos);
    fs::remove(file);
  }
}
