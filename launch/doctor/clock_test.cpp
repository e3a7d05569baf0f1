#include "launch/doctor/clock.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch::doctor;

namespace {

constexpr std::int64_t in_2026 = 1'790'000'000;

clock_facts clock_of(std::uint32_t nodes, bool synchronised, std::int64_t error_us) {
  return {nodes, false, in_2026, "", synchronised, error_us};
}

} // namespace

TEST_SUITE("doctor: clock") {
  TEST_CASE("what it costs depends on what looks at it") {
    auto seen = clock_of(1, false, 16'000'000);
    CHECK(judge(seen).how == grade::ok);
    CHECK(judge(seen).remedy.empty());
    seen.nodes = 2;
    CHECK(judge(seen).how == grade::warning);
    CHECK(judge(seen).remedy.find("chronyc tracking") != std::string::npos);
    seen.nodes = 1;
    seen.certificates = true;
    CHECK(judge(seen).how == grade::warning);
    CHECK(judge(seen).costs == "certificates are judged by the clock");
  }

  TEST_CASE("synchronised is not enough where it may be wrong by more than a second") {
    CHECK(judge(clock_of(2, true, 1'000'000)).how == grade::ok);
    CHECK(judge(clock_of(2, true, 1'000'001)).how == grade::warning);
    CHECK(judge(clock_of(2, true, 20'000)).found == "synchronised, wrong by 20.0 ms at most");
  }

  TEST_CASE("a system that does not tell, and a machine without a clock") {
    auto seen = clock_of(2, false, 0);
    seen.unknown = "Operation not permitted";
    CHECK(judge(seen).how == grade::note);
    seen.seconds = 1'000;
    CHECK(judge(seen).how == grade::warning);
    CHECK(judge(seen).found == "it shows a time before 2025");
  }

  TEST_CASE("this machine's clock can be looked at") {
    const auto seen = look_at_clock({});
    CHECK(seen.seconds > in_2026 - 100'000'000);
  }
}
