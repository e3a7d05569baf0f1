#include "launch/doctor/report.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace troupe::launch::doctor;

namespace {

const finding fine{"memory", grade::ok, "enough"};
const finding bad{"/dev/shm", grade::error, "1.0 MiB of 1.0 MiB are free",
                  "DataLoader workers and NCCL share memory there and end with a bus error",
                  "enlarge it"};

} // namespace

TEST_SUITE("doctor: report") {
  TEST_CASE("columns are aligned, and lines end before the page does") {
    CHECK(text_of(fine, {}) == "ok       memory             enough\n");
    CHECK(text_of(bad, {}) ==
          "error    /dev/shm           1.0 MiB of 1.0 MiB are free\n"
          "                            costs: DataLoader workers and NCCL share memory\n"
          "                            there and end with a bus error\n"
          "                            do: enlarge it\n");
    std::istringstream lines(text_of(bad, {false, 50, false}));
    for (std::string line; std::getline(lines, line);)
      CHECK(line.size() <= 50);
  }

  TEST_CASE("colours are one word's, and take no room") {
    CHECK(text_of(fine, {true, 79, false}) ==
          "\x1b[32mok       \x1b[0mmemory             enough\n");
  }

  TEST_CASE("quiet: only what is to be done") {
    CHECK(text_of(fine, {false, 79, true}).empty());
    CHECK(text_of({"x", grade::note, "y"}, {false, 79, true}).empty());
    CHECK_FALSE(text_of({"x", grade::warning, "y"}, {false, 79, true}).empty());
    CHECK_FALSE(text_of(bad, {false, 79, true}).empty());
  }

  TEST_CASE("what a machine says cannot move the cursor") {
    const auto text = text_of({"x", grade::ok, "a\x1b[2Jb"}, {});
    CHECK(text.find('\x1b') == std::string::npos);
  }

  TEST_CASE("for programs: one object") {
    CHECK(json_of({"/dev/shm", grade::warning, "a \"b\"", "c", ""}) ==
          R"({"subject":"/dev/shm","grade":"warning","found":"a \"b\"","costs":"c","remedy":""})");
  }

  TEST_CASE("what follows from all of them") {
    const finding warned{"clock", grade::warning, "late"};
    CHECK(summary_of({fine}) == "nothing here would stop the job");
    CHECK(summary_of({fine, warned}) == "nothing here would stop the job (1 warning)");
    CHECK(summary_of({bad, warned, warned}) == "1 error would stop the job (2 warnings): /dev/shm");
    CHECK(exit_code_of({fine, warned}) == 0);
    CHECK(exit_code_of({fine, bad}) == 1);
  }
}
