#include "launch/wiring/failure_summary.hpp"

#include "launch/wiring/conclusion.hpp"
#include "launch/worker/error_file.hpp"
#include "tests/fakes/processes.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

worker_failure failure_of(std::uint32_t rank, std::int32_t code) {
  worker_failure f;
  f.node = "node-" + std::to_string(rank / 2);
  f.host = "gpu" + std::to_string(rank / 2);
  f.rank = rank;
  f.local_rank = rank % 2;
  f.pid = 100 + static_cast<std::int32_t>(rank);
  f.exit_code = code;
  f.unix_time_ms = 1'700'000'000'000;
  return f;
}

messages::msg<messages::Conclude> verdict_of(const std::vector<worker_failure>& failures) {
  messages::author author("test");
  return author.write<messages::Conclude>(generation{1}, [&](messages::Conclude::Builder b) {
    auto list = b.initFailures(static_cast<unsigned>(failures.size()));
    for (unsigned i = 0; i < failures.size(); ++i) {
      list[i].setNode(failures[i].node);
      list[i].setRank(failures[i].rank);
      list[i].setLocalRank(failures[i].local_rank);
      list[i].setPid(failures[i].pid);
      list[i].setExitCode(failures[i].exit_code);
      list[i].setMessage(failures[i].message);
      list[i].setTraceback(failures[i].traceback);
      list[i].setLogFile(failures[i].error_file);
    }
  });
}

std::string content_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

} // namespace

TEST_SUITE("failure_summary") {
  TEST_CASE("without a traceback the last lines of stderr are told") {
    auto f = failure_of(1, 1);
    for (int line = 0; line < 30; ++line)
      f.log_tail += "line " + std::to_string(line) + "\n";
    const auto text = failure_summary("t.py", {f}, "");
    CHECK(text.find("\n  end of its stderr:\n  line 10\n  line 11\n") != std::string::npos);
    CHECK(text.find("line 29\n===") != std::string::npos);
    f.log_tail = "all of it";
    CHECK(failure_summary("t.py", {f}, "", "step 7 at /c")
              .find("all of it\n  checkpoint: step 7 at /c\n===") != std::string::npos);
    CHECK(failure_summary("t.py", {f}, "").find("stderr:\n  all of it\n===") != std::string::npos);
    f.traceback = "Traceback";
    CHECK(failure_summary("t.py", {f}, "").find("all of it") == std::string::npos);
  }

  // The form of torch's ChildFailedError; tests/e2e compares with the class itself.
  TEST_CASE("one failure") {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    CHECK(failure_summary("train.py", {failure_of(3, 7)}, "") ==
          "============================================================\n"
          "train.py FAILED\n"
          "------------------------------------------------------------\n"
          "Failures:\n"
          "  <NO_OTHER_FAILURES>\n"
          "------------------------------------------------------------\n"
          "Root Cause (first observed failure):\n"
          "[0]:\n"
          "  time      : 2023-11-14_22:13:20\n"
          "  host      : gpu1\n"
          "  rank      : 3 (local_rank: 1)\n"
          "  exitcode  : 7 (pid: 103) \n"
          "  error_file: <N/A>\n"
          "  traceback : To enable traceback see: "
          "https://pytorch.org/docs/stable/elastic/errors.html\n"
          "============================================================\n");
  }

  TEST_CASE("several are numbered by rank, and the root cause is the last") {
    const auto text =
        failure_summary("train.py", {failure_of(2, -9), failure_of(3, 1), failure_of(0, 1)}, "");
    const auto root = text.find("Root Cause (first observed failure):\n[1]:\n");
    REQUIRE(root != std::string::npos);
    CHECK(text.find("rank      : 2") > root);
    CHECK(text.find("exitcode  : -9 (pid: 102)  (SIGKILL)\n") > root);
    CHECK(text.find("traceback : Signal 9 (SIGKILL) received by PID 102\n") > root);
    CHECK(text.find("[0]:") < text.find("[2]:"));
    CHECK(text.find("[2]:") < root);
    CHECK(text.find("NO_OTHER_FAILURES") == std::string::npos);
  }

  TEST_CASE("a traceback is indented, and nothing in it reaches the terminal as it is") {
    auto f = failure_of(0, 1);
    f.error_file = "/logs/error.json";
    f.traceback = "Traceback:\n  line\n\x1b[2JValueError\n";
    const auto text = failure_summary("train.py", {f}, "");
    CHECK(text.find("  error_file: /logs/error.json\n  traceback : Traceback:\n    line\n") !=
          std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("ValueError\n  \n====") != std::string::npos);
  }

  TEST_CASE("a class that the exit code does not tell, and the line by which it was known") {
    auto f = failure_of(0, 1);
    f.exit_class = "hardware";
    CHECK(failure_summary("train.py", {f}, "").find(" \n  class     : hardware\n  error_file:") !=
          std::string::npos);
    f.matched_line = "GPU is \x1b[1mlost";
    CHECK(failure_summary("train.py", {f}, "")
              .find("  class     : hardware\n  known by  : GPU is \\x1b[1mlost\n  error_file:") !=
          std::string::npos);
  }

  TEST_CASE("without failures the reason stands in their place") {
    CHECK(failure_summary("a.py", {}, "no node came") ==
          "===========\na.py FAILED\n-----------\nno node came\n===========\n");
  }

  TEST_CASE("what failed here after the verdict is added, once") {
    messages::author author("test");
    const auto own = author.write<messages::Failed>(generation{1}, [](messages::Failed::Builder b) {
      auto list = b.initFailures(2);
      for (unsigned i = 0; i < 2; ++i) {
        list[i].setNode("node-1");
        list[i].setLocalRank(i);
        list[i].setRank(2 + i);
        list[i].setPid(static_cast<std::int32_t>(102 + i));
      }
    });
    const auto all = all_failures(verdict_of({failure_of(3, 7), failure_of(0, 1)}), own);
    REQUIRE(all.size() == 3);
    CHECK(all[0].rank == 3);
    CHECK(all[1].rank == 0);
    CHECK(all[2].rank == 2);
  }
}

TEST_SUITE("conclusion") {
  TEST_CASE("the launcher's starter gets the root cause's error file, with its exit code") {
    const auto place = (std::filesystem::temp_directory_path() /
                        ("troupe_own_error." + std::to_string(::getpid())))
                           .string();
    testing::fake_processes no_files;
    auto root = failure_of(0, 3);
    root.message = "exit code 3: ValueError: no";
    root.traceback = "Traceback";
    actors::node_outcome outcome;
    outcome.verdict = verdict_of({root});
    const std::map<std::string, std::string> environment{{"TORCHELASTIC_ERROR_FILE", place}};

    SUBCASE("there is none if it wrote none") {
      conclude_failure("a.py", "node-0", outcome, "", environment, no_files);
      CHECK_FALSE(std::filesystem::exists(place));
    }
    SUBCASE("of another node it is made anew") {
      root.error_file = "/elsewhere/error.json";
      outcome.verdict = verdict_of({root});
      conclude_failure("a.py", "node-9", outcome, "", environment, no_files);
      const auto made = content_of(place);
      CHECK(read_error_file(made)->line == "ValueError: no");
      CHECK(made.find(R"("errorCode":3)") != std::string::npos);
    }
    SUBCASE("that cannot be written is named") {
      root.error_file = "/elsewhere/error.json";
      outcome.verdict = verdict_of({root});
      const auto said = conclude_failure("a.py", "node-9", outcome, "",
                                         {{"TORCHELASTIC_ERROR_FILE", "/nowhere/x"}}, no_files);
      CHECK(said.rfind("the error file '/nowhere/x'", 0) == 0);
    }
    std::filesystem::remove(place);
  }
}

TEST_CASE("the exit code that can be passed on is the root cause's, as a shell would say it") {
  messages::author author("test");
  const auto code = [&](std::vector<int> codes) {
    return exit_code_of(
        author.write<messages::Conclude>(generation{1}, [&](messages::Conclude::Builder b) {
          auto failures = b.initFailures(static_cast<unsigned>(codes.size()));
          for (unsigned i = 0; i < codes.size(); ++i)
            failures[i].setExitCode(codes[i]);
        }));
  };
  CHECK(code({17, 1}) == 17);
  CHECK(code({-9, 1}) == 137);
  CHECK(code({0}) == 1);
  CHECK(code({}) == 1);
}
