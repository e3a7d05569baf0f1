#include "runtime/base/time.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("a duration in words has two numbers at most") {
  CHECK(in_words(850us) == "850 µs");
  CHECK(in_words(12'300us) == "12.3 ms");
  CHECK(in_words(4'200ms) == "4.2 s");
  CHECK(in_words(200s) == "3 min 20 s");
  CHECK(in_words(90min) == "90 min");
  CHECK(in_words(2h) == "2 h 0 min");
  CHECK(in_words(26h + 5min + 59s) == "26 h 5 min");
}
