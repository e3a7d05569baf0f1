#include "launch/doctor/examination.hpp"

#include <doctest/doctest.h>

#include <future>
#include <stdexcept>

using namespace troupe;
using namespace troupe::launch::doctor;

namespace {

findings examined(const std::vector<check>& checks, std::string& slow) {
  findings all;
  examine(
      checks, [&all](const finding& f) { all.push_back(f); }, 1ms,
      [&slow](const std::string& subject) { slow += subject; });
  return all;
}

} // namespace

TEST_SUITE("doctor: examination") {
  TEST_CASE("findings come in the order of the checks") {
    std::string slow;
    std::promise<void> second_ended;
    const auto all =
        examined({{"first", 60s,
                   [&] {
                     second_ended.get_future().wait();
                     return findings{{"first", grade::ok, "1"}};
                   }},
                  {"second", 60s,
                   [&] {
                     second_ended.set_value();
                     return findings{{"second", grade::ok, "2"}, {"third", grade::ok, "3"}};
                   }}},
                 slow);
    REQUIRE(all.size() == 3);
    CHECK(all[0].subject == "first");
    CHECK(all[2].subject == "third");
  }

  TEST_CASE("a check that hangs holds up no other, is told of while it does, and is named") {
    std::string slow;
    const auto never = std::make_shared<std::promise<void>>();
    const auto all =
        examined({{"hangs", 20ms,
                   [waits = never->get_future().share()] {
                     waits.wait();
                     return findings{};
                   }},
                  {"fails", 60s, []() -> findings { throw std::runtime_error("out of files"); }},
                  {"answers", 60s,
                   [] {
                     return findings{{"answers", grade::ok, "here"}};
                   }}},
                 slow);
    never->set_value(); // its thread ends
    REQUIRE(all.size() == 3);
    CHECK(all[0].subject == "hangs");
    CHECK(all[0].how == grade::warning);
    CHECK(all[0].found == "the system has not answered within 20.0 ms");
    CHECK(all[1].found == "it could not be looked at: out of files");
    CHECK(all[2].how == grade::ok);
    CHECK(slow == "hangs");
  }
}
