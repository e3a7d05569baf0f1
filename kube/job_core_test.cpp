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

TEST_SUITE("job_core: what a job needs") {
  TEST_CASE("is made in order, once, and the master's pod last") {
    operated o;
    o.is_told();
    std::vector<std::string> made;
    for (const auto& a : o.asked)
      if (a.find("status") == std::string::npos && a.find("events") == std::string::npos)
        made.push_back(a);
    CHECK(made == std::vector<std::string>{"PATCH serviceaccounts/elasticjob-words-dlrover-master",
                                           "PATCH roles/elasticjob-words-dlrover-master",
                                           "PATCH rolebindings/elasticjob-words-dlrover-master",
                                           "PATCH services/elasticjob-words-dlrover-master",
                                           "PATCH configmaps/elasticjob-words-journal",
                                           "PATCH poddisruptionbudgets/elasticjob-words",
                                           "POST jobs/secrets", makes_master});
    CHECK(o.phase() == "Pending");
    o.master(0, "Pending");
    o.passes(5min);
    CHECK(o.count(makes_master) == 1);
  }

  TEST_CASE("is not made before the pods that are there have been told") {
    operated o;
    o.perform(o.core.job_is(o.moment(), o.object));
    CHECK(o.asked.empty());
  }

  TEST_CASE("has the secret in no place but the Secret") {
    operated o;
    o.is_told();
    for (const auto& r : o.requests)
      CHECK((r.body.find("\"secret\"") == std::string::npos ||
             r.target.find("/secrets") != std::string::npos ||
             r.body.find("\"secret\":{\"secretName\"") != std::string::npos));
  }

  TEST_CASE("a token that is there stays") {
    operated o;
    o.instead = [](const api_request& r) -> std::optional<api_answer> {
      if (r.target.find("/secrets") == std::string::npos)
        return std::nullopt;
      if (r.method == "POST")
        return api_answer{409, R"({"message":"already exists"})", {}};
      // As another controller keeps it, of a person's.
      return api_answer{200,
                        R"({"metadata":{"uid":"s1","ownerReferences":[
                            {"kind":"SealedSecret","uid":"x","controller":true}]}})",
                        {}};
    };
    o.is_told();
    CHECK(o.count("POST jobs/secrets") == 1);
    CHECK(o.count("DELETE secrets/elasticjob-words-token") == 0);
    CHECK(o.count(makes_master) == 1);
  }

  TEST_CASE("a token of a deleted job of that name is removed, and its own is made") {
    operated o;
    std::string secret = R"({"metadata":{"uid":"s0","ownerReferences":[
                             {"kind":"ElasticJob","uid":"u0","controller":true}]}})";
    std::string removed;
    o.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.target.find("/secrets") == std::string::npos)
        return std::nullopt;
      if (r.method == "DELETE")
        removed = r.body, secret.clear();
      if (r.method == "POST" && secret.empty()) {
        secret = r.body;
        return api_answer{201, "{}", {}};
      }
      return r.method == "POST" ? api_answer{409, R"({"message":"already exists"})", {}}
                                : api_answer{200, secret, {}};
    };
    o.is_told();
    CHECK(removed == R"({"preconditions":{"uid":"s0"}})");
    CHECK(secret.find(R"("uid":"u1")") != std::string::npos);
    CHECK(o.count(makes_master) == 1);
    CHECK(o.count("POST jobs/secrets") == 2);
  }

  TEST_CASE("is made sure of before each master, and while one that has a machine does not begin") {
    auto o = operated::running();
    o.asked.clear();
    o.master(0, "Failed", 137);
    o.passes(2s);
    CHECK(o.count("POST jobs/secrets") == 1);
    CHECK(o.count("PATCH configmaps/elasticjob-words-journal") == 1);
    CHECK(o.asked.back() == makes_master);
    o.asked.clear();
    const auto waits = [&](const char* placed) {
      o.perform(o.core.pod_is(o.moment(), json::parse(fmt::format(
                                              R"({{"metadata":{{"name":"{}","uid":"m1","labels":{{
          "elasticjob.dlrover/replica-type":"dlrover-master",
          "elasticjob.dlrover/replica-index":"1"}}}},"status":{{"phase":"Pending","conditions":[
          {{"type":"PodScheduled","status":"{}"}}]}}}})",
                                              master_pod_name("words", 1), placed))));
    };
    waits("False");
    o.passes(10min);
    CHECK(o.count("POST jobs/secrets") == 0);
    waits("True");
    o.passes(limits::pod_told_within + 1s);
    CHECK(o.count("POST jobs/secrets") == 1);
    o.passes(10min);
    CHECK(o.count("POST jobs/secrets") < 25);
    CHECK(o.count(makes_master) == 0);
  }

  TEST_CASE("is made again when the spec has changed, but for what is there") {
    auto o = operated::running();
    o.asked.clear();
    o.changes(
        [](auto& j) { j.at("spec").at("replicaSpecs").at("worker").as_object()["replicas"] = 3; });
    o.passes(5s);
    CHECK(o.count("PATCH services/elasticjob-words-dlrover-master") == 1);
    CHECK(o.count(makes_master) == 0);
  }

  TEST_CASE("is made as a whole where the spec changes while it is being made") {
    operated o;
    auto effects = o.core.job_is(o.moment(), o.object);
    effects = o.core.all_told(o.moment());
    const auto call = [](const job_core::effects& from) {
      for (const auto& e : from)
        if (const auto* c = std::get_if<job_core::call>(&e))
          return *c;
      return job_core::call{};
    };
    // Its status first, then the first of what it needs.
    const auto status = call(effects);
    const auto need = call(o.core.answered(o.moment(), status.number, {200, "{}", {}}));
    REQUIRE(need.what.target.find("serviceaccounts") != std::string::npos);
    o.object.at("spec").as_object()["distributionStrategy"] = "Local";
    o.perform(o.core.job_is(o.moment(), o.object));
    o.perform(o.core.answered(o.moment(), need.number, {404, "", {}}));
    o.object.at("spec").as_object().erase("distributionStrategy");
    o.perform(o.core.job_is(o.moment(), o.object));
    o.passes(5s);
    CHECK(o.count("PATCH serviceaccounts/elasticjob-words-dlrover-master") == 1);
    CHECK(o.count(makes_master) == 1);
  }

  TEST_CASE("that lacks a right is told once, with the server's words, and tried again") {
    operated o;
    int refused = 0;
    o.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.target.find("/roles/") == std::string::npos || refused++ >= 3)
        return std::nullopt;
      return api_answer{403, R"({"message":"cannot patch resource \"roles\""})", {}};
    };
    o.is_told();
    CHECK(text(o.condition("Blocked"), {"status"}) == "True");
    CHECK(text(o.condition("Blocked"), {"message"}).find("cannot patch resource") !=
          std::string::npos);
    o.passes(10s);
    CHECK(o.count(makes_master) == 1);
    CHECK(text(o.condition("Blocked"), {"status"}) == "False");
    CHECK(std::count(o.events.begin(), o.events.end(), "Forbidden") == 1);
  }

  TEST_CASE("that lacks a right for long is tried again ever more seldom") {
    operated o;
    std::vector<instant> tried;
    o.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.target.find("/roles/") == std::string::npos)
        return std::nullopt;
      tried.push_back(o.now);
      return api_answer{403, "{}", {}};
    };
    o.is_told();
    o.passes(5min);
    CHECK(tried.size() > 10);
    CHECK(tried.size() < 20);
    CHECK(tried.back() - tried[tried.size() - 2] >= limits::job_again_most);
  }

  TEST_CASE("a status that may not be written keeps nothing from being made, and asks seldom") {
    for (const unsigned refusal : {403u, 422u}) {
      operated o;
      o.instead = [&](const api_request& r) -> std::optional<api_answer> {
        if (r.target.find("/status") == std::string::npos)
          return std::nullopt;
        return api_answer{refusal, R"({"message":"no"})", {}};
      };
      o.is_told();
      CHECK(o.count(makes_master) == 1);
      o.passes(10min);
      CHECK(o.count("PATCH words/status") < 25);
      // Again once what it needs was made, which went well.
      CHECK(std::count(o.events.begin(), o.events.end(), "Forbidden") == (refusal == 403 ? 2 : 0));
    }
  }

  TEST_CASE("is made again where the server finds the master's pod to lack something") {
    operated o;
    int refused = 0;
    o.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "POST" || r.target.find("/pods") == std::string::npos || refused++ > 0)
        return std::nullopt;
      return api_answer{403, R"({"message":"error looking up service account"})", {}};
    };
    o.is_told();
    o.passes(1min);
    CHECK(o.count("PATCH serviceaccounts/elasticjob-words-dlrover-master") == 2);
    CHECK(o.count(makes_master) == 2);
  }

  TEST_CASE("goes on where the server is away for a while") {
    operated o;
    const auto back = o.now + 40s;
    o.instead = [&](const api_request&) -> std::optional<api_answer> {
      if (o.now >= back)
        return std::nullopt;
      return api_answer{0, "nothing listens", {}};
    };
    o.is_told();
    o.passes(3min);
    CHECK(o.count(makes_master) == 1);
    CHECK(o.asked.size() < 40);
    CHECK(o.events.size() >= 2);
  }
}

TEST_SUITE("job_core: the master's pod") {
  TEST_CASE("is made anew when it is killed or gone, under another name") {
    for (const bool gone : {true, false}) {
      auto o = operated::running();
      o.asked.clear();
      if (gone)
        o.perform(o.core.pod_gone(o.moment(), master_pod_name("words", 0) + "-uid"));
      else
        o.master(0, "Failed", 137);
      o.passes(2s);
      CHECK(o.count(makes_master) == 1);
      CHECK(o.requests.back().target.find("/") != std::string::npos);
      CHECK(std::any_of(o.requests.begin(), o.requests.end(), [](const auto& r) {
        return r.body.find(R"("name":"elasticjob-words-dlrover-master-1")") != std::string::npos;
      }));
      CHECK(o.phase() == "Running");
    }
  }

  TEST_CASE("that ends again and again is made anew ever later, and soon if it ran for long") {
    auto o = operated::running();
    const auto until_next = [&](int attempt) {
      const auto before = o.count(makes_master);
      o.master(attempt, "Failed", 137);
      const auto ended = o.now;
      while (o.count(makes_master) == before && o.now < ended + 5min)
        o.passes(100ms);
      const auto took = o.now - ended;
      o.master(attempt + 1, "Running");
      return took;
    };
    CHECK(until_next(0) < 1s);
    for (int attempt = 1; attempt < 6; ++attempt)
      until_next(attempt);
    CHECK(until_next(6) >= 30s);
    o.passes(limits::master_ran_long + 1s);
    CHECK(until_next(7) < 1s);
  }

  TEST_CASE("is not made twice where its watch event is late") {
    operated o;
    o.is_told();
    o.passes(10min);
    CHECK(o.count(makes_master) == 1);
  }

  TEST_CASE("is made anew where it was gone before it was told") {
    operated o;
    o.is_told();
    o.made.clear();
    o.passes(limits::pod_told_within + 1s);
    CHECK(o.count(makes_master) == 2);
  }

  TEST_CASE(
      "that could not begin says nothing of training: the next one is made, and why is told") {
    auto o = operated::running();
    o.master(0, "Failed", 75, "Error",
             "actor-master: --journal: journal 'configmap:j': 403, it may not be read\n");
    o.passes(2s);
    CHECK(o.phase() == "Running");
    CHECK(o.count(makes_master) == 2);
    CHECK(text(o.condition("Blocked"), {"reason"}) == job_core::failed_start);
    CHECK(text(o.condition("Blocked"), {"message"}) ==
          "--journal: journal 'configmap:j': 403, it may not be read");
    for (int attempt = 1; attempt < 20; ++attempt) {
      const auto made = o.count(makes_master), ended = static_cast<std::size_t>(attempt) + 1;
      REQUIRE(made == ended);
      o.master(attempt, "Failed", 75);
      for (const auto until = o.now + 1min; o.count(makes_master) == made && o.now < until;)
        o.passes(100ms);
    }
    for (int attempt = 0; attempt < 20; ++attempt)
      CHECK((o.count("DELETE pods/" + master_pod_name("words", static_cast<unsigned>(attempt))) !=
             0) == (attempt == 0)); // the next one when the watch has told that it is gone
    o.master(20, "Running");
    o.passes(limits::master_ran_long - 1s);
    CHECK(text(o.condition("Blocked"), {"status"}) == "True");
    o.passes(3s);
    CHECK(text(o.condition("Blocked"), {"status"}) == "False");
    CHECK(std::count(o.events.begin(), o.events.end(), job_core::failed_start) == 2);
  }

  TEST_CASE("trouble that an earlier operator has told ends as well") {
    operated o;
    o.object.as_object()["status"] = json::parse(
        R"({"phase":"Running","status":{"conditions":[{"type":"Blocked","status":"True",
            "reason":"Forbidden","message":"x","lastTransitionTime":"T0"}],"replicaStatuses":{}}})");
    o.is_told();
    CHECK(text(o.condition("Blocked"), {"status"}) == "False");
    REQUIRE(!o.notes.empty());
    CHECK(o.notes[0].name == "job_taken_up");
    CHECK(o.notes[0].text == "ElasticJob jobs/words, which an operator has run before, is Running");
    auto ends = operated::running();
    ends.master(0, "Failed", 75);
    ends.passes(2s);
    CHECK(text(ends.condition("Blocked"), {"status"}) == "True");
    ends.master(1, "Succeeded", 0);
    ends.passes(5s);
    CHECK(ends.phase() == "Succeeded");
    CHECK(text(ends.condition("Blocked"), {"status"}) == "False");
  }

  TEST_CASE("the service finds a master by identity, but for one that an older operator has made") {
    const auto found_by_uid = [](const operated& o) {
      std::string last;
      for (const auto& r : o.requests)
        if (r.target.find("/services/") != std::string::npos)
          last = r.body;
      return last.find(R"("selector":{"elasticjob.dlrover/name":"words",)"
                       R"("elasticjob.dlrover/replica-type":"dlrover-master",)"
                       R"("troupe/job-uid":"u1"})") != std::string::npos;
    };
    operated o;
    o.is_told();
    CHECK(found_by_uid(o));
    operated later;
    later.master(0, "Running"); // told without the label
    later.is_told();
    CHECK_FALSE(found_by_uid(later));
    later.master(0, "Failed", 137);
    later.passes(5s);
    CHECK(found_by_uid(later));
  }

  TEST_CASE("of a deleted job of that name is none of this one's") {
    operated o;
    bool is_left = true;
    o.instead = [&](const api_request& r) -> std::optional<api_answer> {
      const bool first = r.body.find("master-0") != std::string::npos ||
                         r.target.find("master-0") != std::string::npos;
      if (r.target.find("/pods") == std::string::npos || !first || !is_left)
        return std::nullopt;
      if (r.method == "POST")
        return api_answer{409, R"({"message":"already exists"})", {}};
      return api_answer{200,
                        R"({"metadata":{"name":"elasticjob-words-dlrover-master-0","uid":"m0",
                            "labels":{"elasticjob.dlrover/name":"words",
                                      "elasticjob.dlrover/replica-type":"dlrover-master"},
                            "ownerReferences":[{"kind":"ElasticJob","uid":"u0",
                                                "controller":true}]},
                            "status":{"phase":"Succeeded"}})",
                        {}};
    };
    o.is_told();
    CHECK(o.phase() == "Pending");
    CHECK(o.made.find("master-1") != std::string::npos);
  }

  TEST_CASE("is made under another name where the name is another's") {
    operated o;
    o.instead = [](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "POST" || r.body.find("master-0") == std::string::npos ||
          r.target.find("/pods") == std::string::npos)
        return std::nullopt;
      return api_answer{409, R"({"message":"already exists"})", {}};
    };
    o.is_told();
    CHECK(o.count(makes_master) == 2);
    CHECK(o.made.find("master-1") != std::string::npos);
    o.passes(limits::pod_told_within / 2);
    CHECK(o.count(makes_master) == 2);
  }
}
