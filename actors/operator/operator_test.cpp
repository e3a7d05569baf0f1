#include "actors/topology.hpp"
#include "kube/objects.hpp"
#include "runtime/sup/root.hpp"
#include "runtime/sup/testing/simulated_engine.hpp"
#include "tests/kube/simulated_api_server.hpp"
#include "tests/kube/simulated_kubelet.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using troupe::testing::simulated_api_server;
using troupe::testing::simulated_kubelet;
namespace json = boost::json;

namespace {

/// What an operator sees of the simulated server: answers and lines come when they are delivered.
class api_port final : public kube::api_server {
 public:
  explicit api_port(simulated_api_server& server) : server_(server) {}

  void call(kube::api_request what, on_answer answered) override {
    due_.push_back([this, what = std::move(what), answered = std::move(answered)] {
      answered(server_.answer(what));
    });
  }
  std::uint64_t watch(kube::api_request what, on_line line, on_answer ended) override {
    const auto id = ++last_;
    due_.push_back(
        [this, id, what = std::move(what), line = std::move(line), ended = std::move(ended)] {
          const auto opened = server_.watch(what);
          if (opened.answer.status != 200)
            return ended(opened.answer);
          watches_.push_back({id, opened.watch, line, ended});
        });
    return id;
  }
  void cut(std::uint64_t watch) override {
    watches_.erase(std::remove_if(watches_.begin(), watches_.end(),
                                  [&](const auto& w) { return w.id == watch; }),
                   watches_.end());
  }
  /// Answers and lines that are due; true if there were any.
  bool deliver() {
    bool any = false;
    for (auto due = std::exchange(due_, {}); !due.empty(); due.pop_front(), any = true)
      due.front()();
    for (const auto& w : std::vector<open_watch>(watches_)) {
      while (auto text = server_.line(w.server)) {
        w.line(*text);
        any = true;
      }
      if (!server_.is_open(w.server)) {
        cut(w.id);
        w.ended({200, "", {}});
        any = true;
      }
    }
    return any;
  }

 private:
  struct open_watch {
    std::uint64_t id, server;
    on_line line;
    on_answer ended;
  };
  simulated_api_server& server_;
  std::uint64_t last_ = 0;
  std::deque<std::function<void()>> due_;
  std::vector<open_watch> watches_;
};

/// One of several operators, on a machine of its own.
struct operator_process {
  std::shared_ptr<api_port> api;
  sup::simulated_engine engine;
  bool over = false;
  int moments = 0;
  std::vector<std::string> said;
  std::optional<sup::root> root;

  operator_process(simulated_api_server& server, const std::string& name)
      : api(std::make_shared<api_port>(server)) {
    operator_options o;
    o.policy.master_image = "troupe:1";
    o.lease_name_space = "troupe";
    o.lease = "operator";
    o.self = name;
    o.seed = 5;
    operator_world world{api, [this] { return fmt::format("T{}", ++moments); },
                         [] { return std::string("0123456789abcdef"); }, [this] { over = true; }};
    root.emplace(sup::spawn_root(
        engine.system(), operator_tree(o, world, operator_addresses{}),
        [this](const std::string& component, const log::event& e) {
          said.push_back(component + ": " + e.text);
        },
        [](const sup::ending&) {}));
  }
  bool has_said(const std::string& words) const {
    return std::any_of(said.begin(), said.end(),
                       [&](const auto& s) { return s.find(words) != std::string::npos; });
  }
};

struct stage {
  simulated_api_server server;
  simulated_kubelet kubelet{server, "jobs"};
  random_source random{7};
  instant now{};
  std::vector<std::unique_ptr<operator_process>> operators;

  operator_process& starts(const std::string& name) {
    operators.push_back(std::make_unique<operator_process>(server, name));
    return *operators.back();
  }
  void passes(duration d, duration step = 500ms) {
    for (const auto until = now + d; now < until;) {
      now += step;
      server.advance(now);
      for (auto& o : operators)
        o->engine.advance(step);
      for (bool any = true; any;) {
        any = false;
        for (auto& o : operators) {
          o->engine.run_all(random);
          any |= o->api->deliver();
        }
      }
    }
  }
  void applies(const std::string& name, int replicas = 2) {
    const json::object container{{"name", "main"}, {"image", "words:1"}};
    const json::object pod{{"spec", json::object{{"containers", json::array{container}}}}};
    const json::object job{
        {"apiVersion", kube::elastic_job_group},
        {"kind", "ElasticJob"},
        {"metadata", json::object{{"name", name}, {"namespace", "jobs"}}},
        {"spec", json::object{
                     {"replicaSpecs", json::object{{"worker", json::object{{"replicas", replicas},
                                                                           {"template", pod}}}}}}}};
    const auto faults = std::exchange(server.wrong, {});
    const auto made = server.answer({"POST", jobs_path, "application/json", json::serialize(job)});
    server.wrong = faults;
    REQUIRE(made.status == 201);
  }
  std::string uid(const std::string& job) const {
    const auto* found = server.find(std::string(jobs_path) + "/" + job);
    return found != nullptr ? kube::text(*found, {"metadata", "uid"}) : "";
  }
  void deletes(const std::string& job) {
    const auto faults = std::exchange(server.wrong, {0, 0, 0, 0, 0, 0, 0, 0, 5s, collected_after});
    server.answer({"DELETE", std::string(jobs_path) + "/" + job, "", ""});
    server.wrong = faults;
  }
  /// As its master makes the pod of a node.
  void makes_node(const std::string& job, const std::string& name) {
    const json::object labels{{"elasticjob.dlrover/name", job},
                              {"elasticjob.dlrover/replica-type", "worker"},
                              {"troupe/job-uid", uid(job)}};
    const json::object owner{{"kind", "ElasticJob"}, {"uid", uid(job)}, {"controller", true}};
    const json::object pod{{"metadata", json::object{{"name", name},
                                                     {"labels", labels},
                                                     {"ownerReferences", json::array{owner}}}}};
    server.answer({"POST", pods_path, "application/json", json::serialize(pod)});
    kubelet.bind(name, "machine");
    kubelet.run(name, "10.0.0.1");
  }
  /// Pods of masters that are of the job of today and live.
  std::vector<std::string> masters(const std::string& job) const {
    std::vector<std::string> all;
    for (const auto* pod : server.all(pods_path))
      if (kube::controller_of(*pod) == uid(job) && !testing::is_deleted(*pod) &&
          kube::label(*pod, "elasticjob.dlrover/replica-type") == "dlrover-master" &&
          kube::text(*pod, {"status", "phase"}) != "Failed" &&
          kube::text(*pod, {"status", "phase"}) != "Succeeded")
        all.push_back(kube::text(*pod, {"metadata", "name"}));
    return all;
  }
  /// Machines do what is asked of them: pods begin, and end when they are deleted.
  void machines_work() {
    for (const auto& name : pods()) {
      const auto* pod = server.find(kubelet.path(name));
      if (testing::is_deleted(*pod)) {
        kubelet.terminated(name);
      } else if (kube::text(*pod, {"status", "phase"}) == "Pending") {
        kubelet.bind(name, "machine");
        const auto* secret = server.find("/api/v1/namespaces/jobs/secrets/elasticjob-words-token");
        if (secret != nullptr)
          kubelet.run(name, "10.0.0.1");
      }
    }
  }
  std::vector<std::string> pods(const std::string& part = "") const {
    std::vector<std::string> all;
    for (const auto* pod : server.all(pods_path))
      if (const auto name = kube::text(*pod, {"metadata", "name"});
          name.find(part) != std::string::npos)
        all.push_back(name);
    return all;
  }
  std::string phase(const std::string& job) const {
    const auto* found = server.find(std::string(jobs_path) + "/" + job);
    return found != nullptr ? kube::text(*found, {"status", "phase"}) : "gone";
  }
  std::uint64_t requests() const {
    std::uint64_t all = 0;
    for (const auto& [what, n] : server.counts)
      all += n;
    return all;
  }

  duration collected_after{}; ///< what a deleted job has left

  static constexpr auto jobs_path =
      "/apis/elastic.iml.github.io/v1alpha1/namespaces/jobs/elasticjobs";
  static constexpr auto pods_path = "/api/v1/namespaces/jobs/pods";
};

using names = std::vector<std::string>;

constexpr int many_jobs = OPERATOR_JOBS;
constexpr std::uint64_t seeds = OPERATOR_JOBS;

} // namespace

TEST_SUITE("operator: its actors together") {
  TEST_CASE("a job that is there and one that comes have a master each, and what it needs") {
    stage s;
    s.applies("early");
    auto& one = s.starts("one");
    s.passes(5s);
    CHECK(one.has_said("holds the lease"));
    CHECK(s.pods() == names{"elasticjob-early-dlrover-master-0"});
    s.applies("late");
    s.passes(5s);
    CHECK(s.pods() ==
          names{"elasticjob-early-dlrover-master-0", "elasticjob-late-dlrover-master-0"});
    CHECK(s.phase("late") == "Pending");
    CHECK(s.server.find("/api/v1/namespaces/jobs/secrets/elasticjob-late-token") != nullptr);
  }

  TEST_CASE("of two one acts; when it is gone the other goes on, and makes nothing twice") {
    stage s;
    auto& one = s.starts("one");
    s.passes(2s);
    auto& two = s.starts("two");
    s.applies("words");
    s.passes(20s);
    CHECK(one.has_said("holds the lease"));
    CHECK_FALSE(two.has_said("holds the lease"));
    CHECK(s.pods().size() == 1);
    s.operators.erase(s.operators.begin());
    s.applies("next");
    s.passes(25s);
    CHECK(s.operators.front()->has_said("holds the lease"));
    CHECK(s.pods() ==
          names{"elasticjob-next-dlrover-master-0", "elasticjob-words-dlrover-master-0"});
  }

  TEST_CASE("one that cannot renew its lease ends") {
    stage s;
    auto& one = s.starts("one");
    s.passes(5s);
    s.server.instead = [](const kube::api_request&) {
      return std::optional(kube::api_answer{0, "nothing listens", {}});
    };
    s.passes(8s);
    CHECK_FALSE(one.over);
    s.passes(5s);
    CHECK(one.over);
  }

  TEST_CASE("a job follows its pods to the end, and is forgotten when it is deleted") {
    stage s;
    s.starts("one");
    s.applies("words");
    s.passes(5s);
    const auto master = s.pods().at(0);
    s.kubelet.bind(master, "machine");
    s.kubelet.run(master, "10.0.0.1");
    s.passes(3s);
    s.kubelet.end(master, 137);
    s.passes(3s);
    CHECK(s.pods().size() == 2);
    const auto next = s.pods().back();
    s.kubelet.bind(next, "machine");
    s.kubelet.run(next, "10.0.0.2");
    s.passes(3s);
    s.kubelet.end(next, 0);
    s.passes(3s);
    CHECK(s.phase("words") == "Succeeded");
    s.server.answer({"DELETE", std::string(stage::jobs_path) + "/words", "", ""});
    s.passes(3s);
    CHECK(s.phase("words") == "gone");
    CHECK(s.pods().empty());
    s.applies("words");
    s.passes(5s);
    CHECK(s.pods() == names{"elasticjob-words-dlrover-master-0"});
  }

  TEST_CASE("a job that is made again under its name has all of its own, and trains") {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      CAPTURE(seed);
      stage s;
      s.random = random_source(seed);
      s.server = simulated_api_server(seed);
      s.collected_after = std::chrono::seconds(s.random.below(60));
      s.starts("one");
      s.applies("words");
      // Ten moments of a job's life.
      const auto moment = s.random.below(10);
      s.passes(std::chrono::milliseconds(s.random.below(6'000)));
      if (moment >= 2) {
        s.machines_work();
        s.passes(3s);
      }
      if (moment >= 4 && !s.masters("words").empty())
        s.makes_node("words", "words-edljob-worker-0");
      if (moment >= 6 && !s.masters("words").empty())
        s.kubelet.end(s.masters("words").at(0), moment == 6 ? 1 : moment == 7 ? 137 : 0);
      if (moment >= 8)
        s.passes(std::chrono::milliseconds(s.random.below(3'000)));
      s.server.wrong.event_late = 0.2;
      const auto before = s.uid("words");
      // By `kubectl replace --force` nothing lies between the two.
      const bool at_once = s.random.chance(0.5);
      s.deletes("words");
      if (!at_once)
        s.passes(std::chrono::milliseconds(s.random.below(4'000)));
      s.applies("words");
      REQUIRE(s.uid("words") != before);
      for (int second = 0; second < 150; ++second) {
        s.passes(1s);
        s.machines_work();
        REQUIRE(s.masters("words").size() <= 1);
        REQUIRE(s.phase("words") != "Succeeded");
        REQUIRE(s.phase("words") != "Failed");
      }
      REQUIRE(s.masters("words").size() == 1);
      const auto* master = s.server.find(s.kubelet.path(s.masters("words").at(0)));
      CHECK(kube::text(*master, {"status", "phase"}) == "Running");
      const auto* secret = s.server.find("/api/v1/namespaces/jobs/secrets/elasticjob-words-token");
      REQUIRE(secret != nullptr);
      CHECK(kube::controller_of(*secret) == s.uid("words"));
      const auto* journal =
          s.server.find("/api/v1/namespaces/jobs/configmaps/elasticjob-words-journal");
      REQUIRE(journal != nullptr);
      CHECK(kube::controller_of(*journal) == s.uid("words"));
      s.kubelet.end(s.masters("words").at(0), 0);
      s.passes(5s);
      CHECK(s.phase("words") == "Succeeded");
    }
  }

  TEST_CASE(
      "watches that end, are too old or late, and answers that are lost make no second master") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      stage s;
      s.random = random_source(seed);
      s.server = simulated_api_server(seed);
      auto& one = s.starts("one");
      s.server.wrong = {0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.1, 0.1, 5s};
      for (int job = 0; job < 5; ++job) {
        s.applies(fmt::format("job-{}", job));
        s.passes(5s);
        if (job % 2 == 0)
          s.server.end_watches();
        if (job == 3)
          s.server.forget_history();
      }
      s.server.wrong = {};
      if (one.over)
        continue; // its lease could not be renewed, which is the right end
      s.passes(90s);
      for (int job = 0; job < 5; ++job)
        CHECK(s.pods(fmt::format("job-{}-", job)).size() == 1);
    }
  }

  TEST_CASE(
      "many jobs of 100 pods: it asks a few times for each job, and then only for its lease") {
    stage s;
    for (int job = 0; job < many_jobs; ++job)
      s.applies(fmt::format("job-{:03}", job), 100);
    const auto before = s.requests();
    s.starts("one");
    s.passes(60s);
    CHECK(s.pods().size() == many_jobs);
    // Six objects, a token, the master's pod, some states, and some events of each.
    CHECK(s.requests() - before < many_jobs * 20);
    for (int job = 0; job < many_jobs; ++job)
      for (int node = 0; node < 100; ++node) {
        const auto name = fmt::format("job-{:03}-edljob-worker-{}", job, node);
        s.makes_node(fmt::format("job-{:03}", job), name);
      }
    s.passes(60s);
    CHECK(s.phase("job-000") == "Running");
    const auto settled = s.requests(), lists = s.server.counts["list pods"];
    s.passes(10min, 1s);
    CHECK(s.server.counts["list pods"] == lists);
    // The lease twice each 3 s, two watches each few minutes.
    CHECK(s.requests() - settled < 2 * 10 * 60 / 3 + 20);
  }
}
