#include "kube/job_cluster_core.hpp"

#include "kube/objects.hpp"
#include "tests/kube/simulated_api_server.hpp"
#include "tests/kube/simulated_kubelet.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::kube;
using testing::simulated_api_server;
using testing::simulated_kubelet;
namespace json = boost::json;

namespace {

const std::string group = "/apis/elastic.iml.github.io/v1alpha1/namespaces/jobs/";
const std::string pods_path = "/api/v1/namespaces/jobs/pods";

/// A master's cluster, with a planner that does what the cluster wants.
struct mastered {
  simulated_api_server server;
  simulated_kubelet kubelet{server, "jobs"};
  job_cluster_core core;
  instant now{};
  std::vector<node_range> scaled;
  std::vector<std::string> scaled_by;
  bool takes_plans = true;
  std::vector<job_cluster_core::supply> supplies;
  std::vector<log::event> told;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> watches;

  explicit mastered(
      job_cluster_core::options o = {"jobs", "master-0", "words", {}, "words", {1, 2}, "", 3})
      : core(std::move(o)) {
    server.answer({"POST", group + "elasticjobs", "application/json", R"({
      "metadata": {"name": "words", "namespace": "jobs"},
      "spec": {"replicaSpecs": {"worker": {"replicas": 2, "template": {"spec": {"containers": [
        {"name": "main", "image": "words:1"}]}}}}}})"});
    perform(core.start(now));
    perform(core.want(now, 2));
    passes(2s);
  }
  mastered(const mastered&) = delete; // the kubelet is of this server
  mastered& operator=(const mastered&) = delete;

  void perform(const job_cluster_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* c = std::get_if<job_cluster_core::call>(&e)) {
        perform(core.answered(now, c->of, c->number, server.answer(c->what)));
      } else if (const auto* o = std::get_if<job_cluster_core::open>(&e)) {
        watches[{o->of, o->number}] = server.watch(o->what).watch;
      } else if (const auto* x = std::get_if<job_cluster_core::cut>(&e)) {
        watches.erase({x->of, x->number});
      } else if (const auto* s = std::get_if<job_cluster_core::scale>(&e)) {
        scaled.push_back(s->nodes);
        scaled_by.push_back(s->plan);
        perform(core.want(now, s->nodes.max));
        if (!s->plan.empty() && takes_plans)
          perform(core.plan_taken(now, s->plan, true, "it is on record"));
      } else if (const auto* gives = std::get_if<job_cluster_core::supply>(&e)) {
        supplies.push_back(*gives);
      } else {
        told.push_back(std::get<job_cluster_core::note>(e).event);
      }
  }
  void passes(duration d) {
    for (const auto until = now + d; now < until;) {
      now += 100ms;
      server.advance(now);
      for (const auto& [at, id] : std::map(watches))
        while (auto text = server.line(id))
          perform(core.line(now, at.first, at.second, *text));
      perform(core.tick(now));
    }
  }
  void changes(const std::string& patch) {
    server.answer({"PATCH", group + "elasticjobs/words", "application/merge-patch+json", patch});
    passes(2s);
  }
  void plans(const std::string& name, const std::string& spec) {
    server.answer({"POST", group + "scaleplans", "application/json",
                   fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{}}})", name, spec)});
    passes(2s);
  }
  std::string plan_phase(const std::string& name) const {
    return text(*server.find(group + "scaleplans/" + name), {"status", "phase"});
  }
  std::string plan_uid(const std::string& name) const {
    return text(*server.find(group + "scaleplans/" + name), {"metadata", "uid"});
  }
  std::vector<std::string> live() const {
    std::vector<std::string> all;
    for (const auto* pod : server.all(pods_path))
      if (text(*pod, {"metadata", "deletionTimestamp"}).empty())
        all.push_back(text(*pod, {"metadata", "name"}));
    return all;
  }
};

using names = std::vector<std::string>;

} // namespace

TEST_SUITE("job_cluster_core") {
  TEST_CASE("has a pod for each node that is wanted") {
    mastered m;
    CHECK(m.live() == names{"words-edljob-worker-0", "words-edljob-worker-1"});
    CHECK(m.scaled.empty());
  }

  TEST_CASE("a changed ElasticJob scales the job") {
    mastered m;
    m.changes(R"({"spec":{"replicaSpecs":{"worker":{"replicas":4}}}})");
    REQUIRE(m.scaled.size() == 1);
    CHECK(m.scaled[0] == node_range{1, 4});
    CHECK(m.live().size() == 4);
    m.changes(R"({"spec":{"replicaSpecs":{"worker":{"replicas":1}}}})");
    CHECK(m.scaled.back() == node_range{1, 1});
    CHECK(m.live() == names{"words-edljob-worker-0"});
  }

  TEST_CASE("what a person scaled by a shell stays, until the ElasticJob is changed") {
    mastered m;
    m.perform(m.core.want(m.now, 3));
    m.passes(2s);
    CHECK(m.live().size() == 3);
    m.changes(R"({"metadata":{"labels":{"team":"vision"}}})");
    CHECK(m.live().size() == 3);
    CHECK(m.scaled.empty());
  }

  TEST_CASE("a ScalePlan scales it once, and says so") {
    mastered m;
    m.plans("more", R"({"ownerJob":"words","replicaResourceSpecs":{"worker":{"replicas":3}}})");
    REQUIRE(m.scaled.size() == 1);
    CHECK(m.scaled[0] == node_range{1, 3});
    CHECK(m.live().size() == 3);
    CHECK(m.plan_phase("more") == "Succeeded");
    m.passes(5min);
    CHECK(m.scaled.size() == 1);
  }

  TEST_CASE("a ScalePlan is told as done when it is on record, and as failed when it was refused") {
    for (const bool accepted : {false, true}) {
      mastered m;
      m.takes_plans = false;
      m.plans("more", R"({"ownerJob":"words","replicaResourceSpecs":{"worker":{"replicas":3}}})");
      m.passes(1min);
      CHECK(m.plan_phase("more").empty());
      m.perform(m.core.plan_taken(m.now, m.plan_uid("more"), accepted, "so it is"));
      CHECK(m.plan_phase("more") == (accepted ? "Succeeded" : "Failed"));
      CHECK(m.told.back().text ==
            (accepted ? "ScalePlan more: so it is" : "ScalePlan more is not done: so it is"));
      CHECK(m.scaled.size() == 1);
    }
  }

  TEST_CASE("that a ScalePlan is done is told until it is heard, and to no other of its name") {
    for (const unsigned status : {0u, 403u, 500u, 503u}) {
      INFO(status);
      mastered m;
      int refused = 0;
      m.server.instead = [&](const api_request& r) -> std::optional<api_answer> {
        if (r.method != "PATCH" || r.target.find("scaleplans") == std::string::npos || refused == 3)
          return std::nullopt;
        ++refused;
        return api_answer{status, "", {}};
      };
      m.plans("more", R"({"ownerJob":"words","replicaResourceSpecs":{"worker":{"replicas":3}}})");
      m.passes(1min);
      CHECK(refused == 3);
      CHECK(m.plan_phase("more") == "Succeeded");
      CHECK(m.scaled.size() == 1);
      CHECK(m.scaled_by == names{m.plan_uid("more")});
      CHECK(std::count_if(m.told.begin(), m.told.end(), [](const log::event& e) {
              return e.name == "scale_plan_not_written";
            }) == 1);
    }
    mastered m;
    m.server.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "PATCH" || r.target.find("scaleplans") == std::string::npos)
        return std::nullopt;
      m.server.instead = {};
      m.server.remove(group + "scaleplans/more");
      m.server.answer({"POST", group + "scaleplans", "application/json",
                       R"({"metadata":{"name":"more"},"spec":{"ownerJob":"verbs"}})"});
      return std::nullopt;
    };
    m.plans("more", R"({"ownerJob":"words","replicaResourceSpecs":{"worker":{"replicas":3}}})");
    m.passes(1min);
    CHECK(m.plan_phase("more").empty());
  }

  TEST_CASE("a ScalePlan of another job, or of single pods, does nothing") {
    mastered m;
    m.plans("other", R"({"ownerJob":"verbs","replicaResourceSpecs":{"worker":{"replicas":9}}})");
    CHECK(m.plan_phase("other").empty());
    m.plans("single", R"({"ownerJob":"words","migratePods":[{"name":"words-edljob-worker-0"}]})");
    CHECK(m.plan_phase("single") == "Failed");
    CHECK(m.scaled.empty());
    REQUIRE(m.told.size() == 1);
    CHECK(m.told[0].text.find("ScalePlan single is not done") == 0);
  }

  TEST_CASE("a change that is not valid is told once, and the job goes on as it was") {
    mastered m;
    m.changes(R"({"spec":{"replicaSpecs":{"worker":{"replicas":0}}}})");
    m.changes(R"({"metadata":{"labels":{"team":"vision"}}})");
    REQUIRE(m.told.size() == 1);
    CHECK(m.told[0].text.find("spec.replicaSpecs.worker.replicas is 0") != std::string::npos);
    CHECK(m.live().size() == 2);
  }

  TEST_CASE("a job that is suspended has no pods, and has them again when it goes on") {
    mastered m;
    m.changes(R"({"spec":{"suspend":true}})");
    CHECK(m.live().empty());
    for (const auto* name : {"words-edljob-worker-0", "words-edljob-worker-1"})
      m.kubelet.terminated(name);
    m.changes(R"({"spec":{"suspend":false}})");
    CHECK(m.live().size() == 2);
  }

  TEST_CASE("a job that is deleted gets no pod any more") {
    mastered m;
    m.server.change(group + "elasticjobs/words", [](json::object& job) {
      job["metadata"].as_object()["finalizers"] = json::array{"troupe/machines"};
    });
    m.server.answer({"DELETE", group + "elasticjobs/words", "", ""});
    m.passes(2s);
    CHECK(m.live().empty());
    m.passes(5min);
    CHECK(m.live().empty());
    CHECK(m.told.size() == 1);
  }

  TEST_CASE("a job that is deleted without its pods keeps those that run, and gets no other") {
    mastered m;
    m.kubelet.bind("words-edljob-worker-0", "machine-0");
    m.kubelet.run("words-edljob-worker-0", "10.0.0.1");
    m.passes(1s);
    m.server.change(group + "elasticjobs/words", [](json::object& job) {
      job["metadata"].as_object()["finalizers"] = json::array{"troupe/machines", "orphan"};
    });
    m.server.answer({"DELETE", group + "elasticjobs/words", "", ""});
    m.passes(5min);
    CHECK(m.live() == names{"words-edljob-worker-0"});
    m.kubelet.end("words-edljob-worker-0", 1);
    m.passes(5min);
    CHECK(m.server.all(pods_path).size() == 1);
    REQUIRE(m.told.size() == 1);
    CHECK(m.told[0].text == "its ElasticJob was deleted without its pods, which train on: no pod "
                            "is made for it any more");
  }

  TEST_CASE("that its pods are orphans is also seen of them, where its deletion is told late") {
    mastered m;
    m.kubelet.bind("words-edljob-worker-0", "machine-0");
    m.kubelet.run("words-edljob-worker-0", "10.0.0.1");
    m.passes(1s);
    m.server.change(std::string(pods_path) + "/words-edljob-worker-0", [](json::object& pod) {
      pod["metadata"].as_object().erase("ownerReferences");
    });
    m.passes(1s);
    m.server.answer({"DELETE", group + "elasticjobs/words", "", ""});
    m.passes(5min);
    CHECK(m.live() == names{"words-edljob-worker-0"});
    REQUIRE(m.told.size() == 1);
    CHECK(m.told[0].text == "its ElasticJob was deleted: no pod is made for it any more");
  }

  TEST_CASE("a node that is lost is replaced, whatever its pod says") {
    mastered m;
    m.kubelet.bind("words-edljob-worker-0", "machine-0");
    m.kubelet.run("words-edljob-worker-0", "10.0.0.1");
    m.passes(1s);
    m.perform(m.core.node_lost(m.now, "node", "10.0.0.1", "its machine is silent"));
    m.passes(10s);
    CHECK(m.live() == names{"words-edljob-worker-1", "words-edljob-worker-2"});
  }

  TEST_CASE("tells how many nodes it gives, and why no more: until the job is another size") {
    mastered m;
    REQUIRE(m.supplies.size() == 1);
    CHECK(m.supplies[0].nodes == 2);
    CHECK(m.supplies[0].why_no_more.empty());
    CHECK(m.supplies[0].budget == "restartCounts 3, the most of a rank: 0");
    const auto fails = [&](int id) {
      const auto name = fmt::format("words-edljob-worker-{}", id);
      m.kubelet.bind(name, "machine-0");
      m.kubelet.run(name, fmt::format("10.0.0.{}", id));
      m.passes(1s);
      m.perform(m.core.replace(m.now, fmt::format("10.0.0.{}", id), false, "its restarts"));
      m.kubelet.end(name, 1);
      m.passes(10s);
    };
    const auto not_ended = [&] {
      const auto all = m.server.all(pods_path);
      return std::count_if(all.begin(), all.end(), [](const json::value* pod) {
        return text(*pod, {"status", "phase"}) != "Failed";
      });
    };
    for (const int id : {1, 2, 3, 4})
      fails(id);
    CHECK(not_ended() == 1);
    CHECK(m.supplies.size() == 5);
    CHECK(m.supplies.back().nodes == 1);
    CHECK(m.supplies.back().why_no_more ==
          "rank 1 gets no further pod: its node was given up: its restarts (restartCounts 3)");
    CHECK(m.supplies.back().budget == "restartCounts 3, the most of a rank: 3");
    m.perform(m.core.want(m.now, 1));
    CHECK(m.supplies.back().nodes == 1);
    CHECK(m.supplies.back().why_no_more.empty());
    m.perform(m.core.want(m.now, 2));
    m.passes(2s);
    CHECK(m.supplies.back().nodes == 2);
    CHECK(not_ended() == 2);
  }

  TEST_CASE("an ElasticJob that has come under the name has a master of its own") {
    mastered late({"jobs", "master-0", "words", {}, "words", {1, 2}, "", 3, "of-a-deleted-one"});
    CHECK(late.live().empty());
    REQUIRE(!late.told.empty());
    CHECK(late.told.back().text.find("another has its name") != std::string::npos);
  }

  TEST_CASE("the pods of a gang say which one it is") {
    mastered m({"jobs", "master-0", "words", {}, "words", {1, 2}, "volcano", 3});
    const auto* pod = m.server.find(pods_path + "/words-edljob-worker-0");
    CHECK(annotation(*pod, "scheduling.k8s.io/group-name") == "elasticjob-words");
    CHECK(text(*pod, {"spec", "schedulerName"}) == "volcano");
  }

  TEST_CASE("the machine of a pod with broken hardware is tainted") {
    mastered m({"jobs", "master-0", "words", machine_mark::taint, "words", {1, 2}, "", 3});
    m.server.answer({"POST", "/api/v1/nodes", "application/json",
                     R"({"metadata":{"name":"machine-0"},"spec":{}})"});
    m.kubelet.bind("words-edljob-worker-0", "machine-0");
    m.kubelet.run("words-edljob-worker-0", "10.0.0.1");
    m.passes(1s);
    m.kubelet.end("words-edljob-worker-0", 201);
    m.passes(20s);
    const auto* machine = m.server.find("/api/v1/nodes/machine-0");
    REQUIRE(items(*machine, {"spec", "taints"}).size() == 1);
    CHECK(text(items(*machine, {"spec", "taints"})[0], {"key"}) == "troupe/faulty");
  }
}
