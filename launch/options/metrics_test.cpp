#include "launch/options/metrics.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using launch::derive_metrics;

TEST_CASE("where metrics are served") {
  CHECK(!derive_metrics("").value());
  CHECK(derive_metrics("9500").value() == ports::endpoint{"*", 9500});
  CHECK(derive_metrics("0").value() == ports::endpoint{"*", 0});
  CHECK(derive_metrics("127.0.0.1:9500").value() == ports::endpoint{"127.0.0.1", 9500});
  CHECK(derive_metrics("[::1]:9500").value() == ports::endpoint{"::1", 9500});
}

TEST_CASE("what is no place to listen at") {
  for (const char* wrong : {"x", "host", "65536", "-1", "host:port", ":", "::1:9500"}) {
    const auto where = derive_metrics(wrong);
    REQUIRE_MESSAGE(!where, wrong);
    CHECK(where.error().what.find(wrong) != std::string::npos);
    CHECK(where.error().what.find("[HOST:]PORT") != std::string::npos);
  }
}
