#include "runtime/base/back_off.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("a back-off doubles up to its longest wait, and begins anew when it is told to") {
  back_off wait(100ms, 350ms);
  for (const duration expected : {100ms, 200ms, 350ms, 350ms})
    CHECK(wait.next() == expected);
  wait.reset();
  CHECK(wait.next() == 100ms);
  CHECK(wait.next() == 200ms);
}
