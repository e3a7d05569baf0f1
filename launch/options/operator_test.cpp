#include "launch/options/options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

using words = std::vector<std::string>;

words operating(words more) {
  more.emplace_back("--master-image=m");
  return more;
}

operator_program_options parsed_as(const words& all) {
  const auto p = parse_operator(all, machine_facts{});
  if (const auto* e = std::get_if<refusal>(&p))
    FAIL(e->what);
  return std::get<operator_program_options>(p);
}

std::string wrong_in(const words& all) {
  const auto p = parse_operator(all, machine_facts{});
  REQUIRE(std::holds_alternative<refusal>(p));
  return std::get<refusal>(p).what;
}

operator_program_options accepted(const words& more) {
  return parsed_as(operating(more));
}

std::string refused(const words& more) {
  return wrong_in(operating(more));
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

  TEST_CASE("a wait needs a job and its namespace, and hears of nothing else") {
    CHECK(!accepted({}).awaited_job);
    auto o = parsed_as({"--wait-for-job=words", "--namespace", "training"});
    CHECK(o.awaited_job == "words");
    CHECK(o.wait_limit == std::chrono::minutes(5));
    o = parsed_as({"--wait-for-job=words", "--namespace=training", "--wait-limit=7"});
    CHECK(o.wait_limit == std::chrono::seconds(7));
    CHECK(wrong_in({"--wait-for-job=words"}).find("needs --namespace") != std::string::npos);
    CHECK(wrong_in({"--wait-for-job=words", "--namespace=n", "--wait-limit=-1"}).find("-1; 1 to") !=
          std::string::npos);
    CHECK(wrong_in({"--wait-for-job=words", "--namespace=n", "--wait-limit=0"}).find("0; 1 to") !=
          std::string::npos);
    CHECK(wrong_in({"--wait-for-job=", "--namespace=n"}) ==
          "--wait-for-job: the name of a job is needed");
    for (const auto* more : {"--master-image=m", "--gang=volcano", "--metrics-listen=1",
                             "--lease-name=l", "--mark-faulty=taint", "--master-metrics-port=1"})
      CHECK(wrong_in({"--wait-for-job=words", "--namespace=n", more}).find("runs no operator") !=
            std::string::npos);
    CHECK(refused({"--wait-limit=7"}) == "--wait-limit needs --wait-for-job");
  }
}
