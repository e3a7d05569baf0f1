#include "launch/options/options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

parsed<operator_program_options> parse(std::vector<std::string> more) {
  more.emplace_back("--master-image=m");
  return parse_operator(more, machine_facts{});
}

operator_program_options accepted(const std::vector<std::string>& more) {
  const auto p = parse(more);
  if (const auto* e = std::get_if<refusal>(&p))
    FAIL(e->what);
  return std::get<operator_program_options>(p);
}

std::string refused(const std::vector<std::string>& more) {
  const auto p = parse(more);
  REQUIRE(std::holds_alternative<refusal>(p));
  return std::get<refusal>(p).what;
}

} // namespace

TEST_SUITE("operator options") {
  TEST_CASE("no port is opened unless that is said, on every address or on one") {
    CHECK(!accepted({}).metrics_listen);
    CHECK(accepted({}).master_metrics_port == 0);
    CHECK(accepted({"--metrics-listen=9402"}).metrics_listen == ports::endpoint{"*", 9402});
    CHECK(accepted({"--metrics-listen", "127.0.0.1:0"}).metrics_listen ==
          ports::endpoint{"127.0.0.1", 0});
    CHECK(accepted({"--master-metrics-port=9500"}).master_metrics_port == 9500);
  }

  TEST_CASE("what is no port is named") {
    CHECK(refused({"--metrics-listen=probes"}).find("--metrics-listen: 'probes'") == 0);
    CHECK(refused({"--master-metrics-port=65536"}) ==
          "--master-metrics-port: 65536; 0 to 65535 are possible");
    CHECK(refused({"--master-metrics-port=-1"}).find("--master-metrics-port: -1") == 0);
  }
}
