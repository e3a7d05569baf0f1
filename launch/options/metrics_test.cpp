#include "launch/options/metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using launch::derive_metrics;

TEST_CASE("where metrics are served") {
  CHECK(!derive_metrics({}).value().listen);
  CHECK(derive_metrics({"9500"}).value().listen == ports::endpoint{"*", 9500});
  CHECK(derive_metrics({"0"}).value().listen == ports::endpoint{"*", 0});
  CHECK(derive_metrics({"127.0.0.1:9500"}).value().listen == ports::endpoint{"127.0.0.1", 9500});
  CHECK(derive_metrics({"[::1]:9500"}).value().listen == ports::endpoint{"::1", 9500});
}

TEST_CASE("what is no place to listen at") {
  for (const char* wrong : {"x", "host", "65536", "-1", "host:port", ":", "::1:9500"}) {
    const auto where = derive_metrics({wrong});
    REQUIRE_MESSAGE(!where, wrong);
    CHECK(where.error().what.find(wrong) != std::string::npos);
    CHECK(where.error().what.find("[HOST:]PORT") != std::string::npos);
  }
}

TEST_CASE("how long the result stays readable") {
  CHECK(derive_metrics({}).value().linger == 60s);
  CHECK(derive_metrics({"9500", 0}).value().linger == 0s);
  CHECK(derive_metrics({"9500", 2.5}).value().linger == 2500ms);
  for (const double wrong : {-1.0, 3'601.0, std::nan("")})
    CHECK(derive_metrics({"9500", wrong}).error().what.find("--metrics-linger") == 0);
}
