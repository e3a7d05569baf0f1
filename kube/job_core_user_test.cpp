#include "kube/job_core.hpp"
#include "kube/limits.hpp"
#include "tests/kube/operated_job.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::kube;
using testing::makes_master;
using testing::operated;
namespace json = boost::json;

TEST_SUITE("job_core: what a user says") {
  TEST_CASE("a spec with a mistake is told with its field, and taken up once it is mended") {
    operated o;
    o.object.at("spec").as_object()["distributionStrategy"] = "ParameterServerStrategy";
    o.is_told();
    CHECK(o.phase() == "Failed");
    CHECK(text(o.condition("Failed"), {"message"}).find("spec.distributionStrategy") == 0);
    CHECK(o.count(makes_master) == 0);
    o.changes([](auto& j) { j.at("spec").as_object().erase("distributionStrategy"); });
    o.passes(5s);
    CHECK(o.phase() == "Pending");
    CHECK(o.count(makes_master) == 1);
  }

  TEST_CASE("suspended: its pods are removed, and made again when it goes on") {
    auto o = operated::running();
    o.asked.clear();
    o.changes([](auto& j) { j.at("spec").as_object()["suspend"] = true; });
    // Both at once, and again where the watch tells of neither.
    const auto removals = [&o] {
      return std::count_if(o.asked.begin(), o.asked.end(),
                           [](const auto& a) { return a.find("DELETE pods/") == 0; });
    };
    CHECK(removals() == 2);
    o.passes(limits::pod_told_within - 1s);
    CHECK(removals() == 2);
    o.passes(2s);
    CHECK(removals() == 4);
    o.pod(master_pod_name("words", 0), master_role, "Running", {}, "", true);
    o.pod("words-edljob-worker-0", worker_role, "Running", {}, "", true);
    o.passes(5s);
    CHECK(o.phase() != "Suspended");
    for (const auto& uid :
         {master_pod_name("words", 0) + "-uid", std::string("words-edljob-worker-0-uid")})
      o.perform(o.core.pod_gone(o.moment(), uid));
    o.passes(5s);
    CHECK(o.phase() == "Suspended");
    const auto before = o.count(makes_master);
    o.passes(5min);
    CHECK(o.count(makes_master) == before);
    o.changes([](auto& j) { j.at("spec").as_object()["suspend"] = false; });
    o.passes(5s);
    CHECK(o.count(makes_master) == before + 1);
    CHECK(o.phase() == "Pending");
  }

  TEST_CASE("deleted: what no owner reference covers goes first, then its finalizer") {
    operated o({"", "", gang::none, 0, "", "", "machines", "taint"});
    o.is_told();
    CHECK(o.asked[1] == "PATCH elasticjobs/words");
    o.changes(
        [](auto& j) {
          auto& meta = j.at("metadata").as_object();
          meta["finalizers"] = json::array{"others", finalizer};
          meta["deletionTimestamp"] = "T9";
          meta["resourceVersion"] = "99";
        },
        false);
    o.passes(5s);
    REQUIRE(o.count("DELETE clusterrolebindings/troupe-jobs-words-machines") == 1);
    const auto& last = o.requests.back();
    CHECK(o.asked.back() == "PATCH elasticjobs/words");
    CHECK(last.body == R"({"metadata":{"resourceVersion":"99","finalizers":["others"]}})");
  }

  TEST_CASE("deleted, where the right on what no owner reference covers was taken away") {
    operated o({"", "", gang::none, 0, "", "", "machines", "taint"});
    o.is_told();
    o.instead = [](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "DELETE")
        return std::nullopt;
      return api_answer{403, R"({"message":"forbidden"})", {}};
    };
    o.changes(
        [](auto& j) {
          auto& meta = j.at("metadata").as_object();
          meta["finalizers"] = json::array{finalizer};
          meta["deletionTimestamp"] = "T9";
        },
        false);
    o.passes(5s);
    CHECK(o.asked.back() == "PATCH elasticjobs/words");
    CHECK(o.requests.back().body.find(R"("finalizers":[])") != std::string::npos);
    CHECK(o.notes.back().text.find(
              "kubectl delete clusterrolebinding troupe-jobs-words-machines") != std::string::npos);
  }

  TEST_CASE("pods that are pending say why, once") {
    auto o = operated::running();
    for (int i = 0; i < 3; ++i) {
      auto p = json::parse(R"({"metadata":{"name":"words-edljob-worker-1","uid":"w1","labels":
          {"elasticjob.dlrover/replica-type":"worker"}},"status":{"phase":"Pending","conditions":[
          {"type":"PodScheduled","status":"False","reason":"Unschedulable",
           "message":"0/4 nodes are available"}]}})");
      o.perform(o.core.pod_is(o.moment(), p));
      o.passes(10s);
    }
    CHECK(std::count(o.events.begin(), o.events.end(), "PodPending") == 1);
    CHECK(text(o.condition("Blocked"), {"message"}) ==
          "pod words-edljob-worker-1 is pending: Unschedulable: 0/4 nodes are available");
    o.pod("words-edljob-worker-1", worker_role, "Running");
    o.perform(o.core.pod_gone(o.moment(), "w1"));
    o.passes(5s);
    CHECK(text(o.condition("Blocked"), {"status"}) == "False");
  }
}
