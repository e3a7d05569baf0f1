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

namespace {

/// Runs a job on a server that knows these versions of the group `policy` alone.
operated with_policy(const std::vector<std::string>& versions) {
  operated o;
  o.instead = [versions](const api_request& r) -> std::optional<api_answer> {
    if (r.target.find("poddisruptionbudgets") == std::string::npos)
      return std::nullopt;
    for (const auto& version : versions)
      if (r.target.find("/apis/policy/" + version + "/") == 0 &&
          r.body.find("\"policy/" + version + "\"") != std::string::npos)
        return api_answer{200, "{}", {}};
    return api_answer{404, "404 page not found", {}};
  };
  o.is_told();
  return o;
}

} // namespace

TEST_SUITE("job_core: the disruption budget") {
  TEST_CASE("is of the version that the cluster has, and nothing is said of it") {
    for (const auto* version : {"v1", "v1beta1"}) {
      auto o = with_policy({version});
      o.passes(5s);
      CHECK(o.count("PATCH poddisruptionbudgets/elasticjob-words") ==
            (version == std::string("v1") ? 1 : 2));
      CHECK(std::count(o.events.begin(), o.events.end(), "NoDisruptionBudget") == 0);
      CHECK(o.count(makes_master) == 1);
    }
  }

  TEST_CASE("is left out, and told, where the cluster has none of them") {
    auto o = with_policy({});
    o.passes(5s);
    CHECK(o.count("PATCH poddisruptionbudgets/elasticjob-words") == 2);
    CHECK(std::count(o.events.begin(), o.events.end(), "NoDisruptionBudget") == 1);
    CHECK(o.count(makes_master) == 1);
  }
}

TEST_SUITE("job_core: the end of a job") {
  TEST_CASE("is what its master's exit code says") {
    struct {
      int code;
      const char *phase, *reason;
    } const ends[] = {{0, "Succeeded", "Trained"},
                      {1, "Failed", "TrainingFailed"},
                      {2, "Failed", "TrainingFailed"},
                      {3, "Failed", "TrainingFailed"}};
    for (const auto& e : ends) {
      auto o = operated::running();
      o.master(0, e.code == 0 ? "Succeeded" : "Failed", e.code);
      o.passes(5s);
      CHECK(o.phase() == e.phase);
      CHECK(text(o.condition(e.phase), {"reason"}) == e.reason);
      CHECK(o.count(makes_master) == 1);
      o.passes(1min);
      CHECK(o.phase() == e.phase);
    }
  }

  TEST_CASE("is told by the last error of its master's log") {
    auto o = operated::running();
    o.master(0, "Failed", 1, "Error",
             "13:50:20.348  job 'words': waiting for 1 to 2 nodes\n"
             "13:50:21.000  error: one before it\n"
             "13:50:21.063  error: the job has failed: rank 1 failed: CUDA error: out of memory\n"
             "13:50:21.064  the end\n");
    o.passes(5s);
    CHECK(text(o.condition("Failed"), {"message"}) ==
          "the job has failed: rank 1 failed: CUDA error: out of memory "
          "(pod elasticjob-words-dlrover-master-0)");

    auto silent = operated::running();
    silent.master(0, "Failed", 1, "Error", "13:50:20.348  job 'words': waiting");
    silent.passes(5s);
    CHECK(text(silent.condition("Failed"), {"message"}).find("training has failed for good") == 0);
  }

  TEST_CASE("is no restart, though its nodes are gone before its master") {
    auto o = operated::running();
    o.worker(0, "Failed");
    o.passes(2s);
    CHECK(o.phase() == "Running");
    o.passes(2s);
    CHECK(o.phase() == "Restarting");
    o.worker(1, "Running");
    o.passes(2s);
    CHECK(o.phase() == "Running");
    o.worker(1, "Succeeded");
    o.passes(1s);
    o.master(0, "Succeeded", 0);
    o.passes(1min);
    CHECK(o.phase() == "Succeeded");
    CHECK(std::count(o.events.begin(), o.events.end(), "NoNodes") == 1);
  }

  TEST_CASE("of an evicted master is none, whatever its code") {
    auto o = operated::running();
    o.master(0, "Failed", 1, "Evicted");
    o.passes(5s);
    CHECK(o.phase() == "Running");
    CHECK(o.count(makes_master) == 2);
  }

  TEST_CASE("removes pods that wait for room, and later those that do not end") {
    auto o = operated::running();
    o.worker(1, "Pending");
    o.master(0, "Succeeded", 0);
    o.passes(5s);
    CHECK(o.count("DELETE pods/words-edljob-worker-1") >= 1);
    CHECK(o.count("DELETE pods/words-edljob-worker-0") == 0);
    o.perform(o.core.pod_gone(o.moment(), "words-edljob-worker-1-uid"));
    o.passes(limits::pods_end_within + 5s);
    CHECK(o.count("DELETE pods/words-edljob-worker-0") >= 1);
  }

  TEST_CASE("removes the job itself after the time that it asks for") {
    auto o = operated::running();
    o.changes([](auto& j) {
      j.at("metadata").as_object()["annotations"] =
          json::object{{"troupe/ttl-seconds-after-finished", "300"}};
    });
    o.master(0, "Succeeded", 0);
    o.worker(0, "Succeeded");
    o.passes(290s);
    CHECK(o.count("DELETE elasticjobs/words") == 0);
    o.passes(20s);
    CHECK(o.count("DELETE elasticjobs/words") >= 1);
  }

  TEST_CASE("is known to an operator that comes later") {
    operated o;
    o.object.as_object()["status"] = json::parse(
        R"({"phase":"Succeeded","status":{"conditions":[{"type":"Succeeded","status":"True",
            "reason":"Trained","message":"x","lastTransitionTime":"T0"}],"replicaStatuses":{}}})");
    o.is_told();
    CHECK(o.count(makes_master) == 0);
    CHECK(text(o.condition("Succeeded"), {"lastTransitionTime"}) == "T0");
  }
}
