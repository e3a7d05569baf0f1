#include "runtime/base/rare.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;

namespace {

void take_a_rare_branch(int value) {
  TROUPE_RARE_IF(value < 0, "rare_test: a value is negative");
  if (value > 100)
    TROUPE_RARE("rare_test: a value is large");
}

rare_mark* find(const std::string& what) {
  for (auto* m = rare_mark::first(); m; m = m->next())
    if (m->what() == what)
      return m;
  return nullptr;
}

} // namespace

TEST_SUITE("rare") {
  TEST_CASE("a mark is known before it is reached, and is reached in its own case alone") {
    auto* negative = find("rare_test: a value is negative");
    auto* large = find("rare_test: a value is large");
    REQUIRE(negative);
    REQUIRE(large);
    CHECK_FALSE(negative->reached());
    take_a_rare_branch(1);
    CHECK_FALSE(negative->reached());
    CHECK_FALSE(large->reached());
    take_a_rare_branch(-1);
    CHECK(negative->reached());
    CHECK_FALSE(large->reached());
    take_a_rare_branch(101);
    CHECK(large->reached());
    negative->forget();
    CHECK_FALSE(negative->reached());
    CHECK(large->reached());
  }
}
