#include "launch/options/planned_end.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

using variables = std::map<std::string, std::string>;

planned_end_settings accepted(const planned_end_arguments& w, const variables& environment = {}) {
  const auto s = derive_planned_end(w, environment);
  REQUIRE_MESSAGE(s.has_value(), (s ? "" : s.error().what));
  return *s;
}

std::string refused(const planned_end_arguments& w, const variables& environment = {}) {
  const auto s = derive_planned_end(w, environment);
  REQUIRE_FALSE(s.has_value());
  return s.error().what;
}

planned_end_arguments ucp() {
  planned_end_arguments w;
  w.mode = "ucp";
  return w;
}

} // namespace

TEST_SUITE("planned ends") {
  TEST_CASE("without a word workers are ended at once, and no file is removed") {
    const auto s = accepted({});
    CHECK_FALSE(s.asks);
    CHECK(s.stop_file == "");
    CHECK(s.ucp_device.empty());
  }

  TEST_CASE("an option goes before DLRover's variables") {
    const variables dlrover{{"DLROVER_TRAINING_ELASTIC_MODE", "ucp"},
                            {"DLROVER_UCP_WAIT_TIME", "2.5"},
                            {"DLROVER_UCP_MAX_WAIT_TIME", "90"}};
    const auto told = accepted({}, dlrover);
    CHECK(told.asks);
    CHECK(told.begin_within == 2'500ms);
    CHECK(told.within == 90s);
    CHECK_FALSE(told.stop_file);
    planned_end_arguments w;
    w.mode = "base";
    w.begin_within = "1";
    w.within = "2";
    const auto typed = accepted(w, dlrover);
    CHECK_FALSE(typed.asks);
    CHECK(typed.begin_within == 1s);
    CHECK(typed.within == 2s);
  }

  TEST_CASE("the usual values, and others") {
    auto w = ucp();
    CHECK(accepted(w).begin_within == 30s);
    CHECK(accepted(w).within == 60s);
    CHECK(accepted(w).signal == SIGUSR1);
    w.signal = "SIGUSR2";
    w.stop_file = "";
    w.ucp_device = "cuda";
    CHECK(accepted(w).signal == SIGUSR2);
    CHECK(accepted(w).stop_file == "");
    CHECK(accepted(w).ucp_device == "cuda");
  }

  TEST_CASE("what cannot be meant is one line that names the thing") {
    CHECK(refused({}, {{"DLROVER_TRAINING_ELASTIC_MODE", "upc"}}) ==
          "DLROVER_TRAINING_ELASTIC_MODE: 'upc' is not base or ucp");
    CHECK(refused({}, {{"DLROVER_UCP_WAIT_TIME", "30s"}}) ==
          "DLROVER_UCP_WAIT_TIME: '30s' is no number");
    CHECK(refused({}, {{"DLROVER_UCP_MAX_WAIT_TIME", "-1"}}) ==
          "DLROVER_UCP_MAX_WAIT_TIME: -1 is not from 0 to 86400 seconds");
    auto w = ucp();
    w.within = "1e9";
    CHECK(refused(w) == "--graceful-within: 1000000000 is not from 0 to 86400 seconds");
    w = ucp();
    w.signal = "SIGKILL";
    CHECK(refused(w).find("--graceful-signal: 'SIGKILL' is no signal") == 0);
  }
}
