#include "launch/wiring/endpoint_name.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

/// A name that resolves after so long, in a time of its own.
struct late_name {
  duration resolves_after;
  duration passed{};
  duration lookup_takes{};
  std::optional<duration> stopped_after;
  std::vector<std::string> told;

  result<void> await(duration within) {
    name_wait by;
    by.lookup = [this](const std::string& host) {
      CHECK(host == "head");
      passed += lookup_takes;
      return std::string(passed >= resolves_after ? "" : "Name or service not known");
    };
    by.now = [this] { return instant{} + passed; };
    by.pause = [this](duration d) {
      passed += d;
      return !stopped_after || passed < *stopped_after;
    };
    by.log = [this](const std::string&, const log::event& e) { told.push_back(e.text); };
    return await_name("head", within, by);
  }
};

} // namespace

TEST_CASE("a name that resolves is not waited for") {
  late_name n{0s};
  CHECK(n.await(60s));
  CHECK(n.passed == 0s);
  CHECK(n.told.empty());
}

TEST_CASE("a name that resolves late is waited for, and the wait is told") {
  late_name n{5s};
  CHECK(n.await(60s));
  CHECK(n.passed < 8s);
  REQUIRE(n.told.size() == 1);
  CHECK(n.told[0] == "waiting for the name 'head' to be resolved (Name or service not known): it "
                     "tells which node runs the master");
}

TEST_CASE("a name that never resolves ends the wait, with the reason") {
  late_name n{1h};
  const auto waited = n.await(60s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == errc::unavailable);
  CHECK(waited.error().what ==
        "the endpoint's name 'head' was not resolved within 60.0 s (Name or service not known): "
        "this node cannot tell whether it is to run the master");
  CHECK(n.passed >= 60s);
  CHECK(n.told.size() == 3);
}

TEST_CASE("the time that a slow resolver takes counts") {
  late_name n{1h};
  n.lookup_takes = 10s;
  CHECK_FALSE(n.await(60s));
  CHECK(n.passed < 80s);
}

TEST_CASE("a wait for a name can be stopped") {
  late_name n{1h};
  n.stopped_after = 3s;
  const auto waited = n.await(60s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == errc::closed);
}
