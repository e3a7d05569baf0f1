#pragma once

#include "kube/job_core.hpp"
#include "kube/job_objects.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

namespace json = boost::json;

/// A job whose requests are answered at once, by a server that has everything; what is asked of it
/// is kept as "METHOD last/words".
struct operated {
  kube::job_core core;
  instant now{};
  json::value object = json::parse(R"({
    "metadata": {"name": "words", "namespace": "jobs", "uid": "u1", "generation": 1,
                 "resourceVersion": "7"},
    "spec": {"replicaSpecs": {"worker": {"replicas": 2, "template": {"spec": {"containers": [
      {"name": "main", "image": "words:1"}]}}}}}})");
  std::vector<std::string> asked;
  std::vector<kube::api_request> requests;
  std::vector<log::event> notes;
  json::value status;
  std::vector<std::string> events;
  std::string made; ///< the newest pod
  /// Instead of success, if it answers.
  std::function<std::optional<kube::api_answer>(const kube::api_request&)> instead;

  explicit operated(kube::operator_policy policy = {})
      : core({[&] {
                policy.master_image = "troupe:1";
                return policy;
              }(),
              "secret", 3}) {}

  kube::job_core::moment moment() const {
    return {now,
            fmt::format(
                "T{}",
                std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count())};
  }
  kube::api_answer answer(const kube::api_request& r) {
    if (instead)
      if (auto other = instead(r))
        return *other;
    if (r.target.find("/status") != std::string::npos)
      status = json::object{{"status", kube::parsed(r.body)->at(1).at("value")}};
    if (r.target.find("/events") != std::string::npos)
      events.push_back(kube::text(*kube::parsed(r.body), {"reason"}));
    if (r.method == "POST" && r.target.find("/pods") != std::string::npos)
      made = r.body;
    if (r.method == "GET" && r.target.find("/pods/") != std::string::npos)
      return made.empty() ? kube::api_answer{404, "", {}} : kube::api_answer{200, made, {}};
    return {r.method == "POST" ? 201u : 200u, "{}", {}};
  }
  void perform(const kube::job_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* n = std::get_if<kube::job_core::note>(&e)) {
        notes.push_back(n->event);
      } else {
        const auto& c = std::get<kube::job_core::call>(e);
        const auto target = c.what.target.substr(0, c.what.target.find('?'));
        const auto cut = target.rfind('/', target.rfind('/') - 1);
        asked.push_back(c.what.method + " " + target.substr(cut + 1));
        requests.push_back(c.what);
        perform(core.answered(moment(), c.number, answer(c.what)));
      }
  }
  /// Until it has nothing to do for so long.
  void passes(duration d) {
    const auto until = now + d;
    while (core.next_wakeup() && *core.next_wakeup() <= until) {
      now = std::max(now + 1ms, *core.next_wakeup());
      perform(core.tick(moment()));
    }
    now = until;
  }
  void is_told() {
    perform(core.job_is(moment(), object));
    perform(core.all_told(moment()));
    passes(5s);
  }
  void changes(std::function<void(json::value&)> what, bool spec = true) {
    what(object);
    if (spec) {
      auto& meta = object.at("metadata").as_object();
      meta["generation"] = meta["generation"].as_int64() + 1;
    }
    perform(core.job_is(moment(), object));
  }
  void pod(const std::string& name, const std::string& role, const std::string& phase,
           std::optional<int> code = {}, const std::string& reason = "", bool going = false,
           const std::string& log = "") {
    const auto index = name.substr(name.rfind('-') + 1);
    json::object meta{
        {"name", name},
        {"namespace", "jobs"},
        {"uid", name + "-uid"},
        {"labels", json::object{{kube::role_label, role}, {kube::index_label, index}}}};
    if (going)
      meta["deletionTimestamp"] = "T1";
    json::object state{{"phase", phase}, {"reason", reason}};
    if (code)
      state["containerStatuses"] = json::array{json::object{
          {"state",
           json::object{{"terminated", json::object{{"exitCode", *code}, {"message", log}}}}}}};
    perform(core.pod_is(moment(), json::object{{"metadata", meta}, {"status", state}}));
  }
  void master(int attempt, const std::string& phase, std::optional<int> code = {},
              const std::string& reason = "", const std::string& log = "") {
    pod(kube::master_pod_name("words", attempt), kube::master_role, phase, code, reason, false,
        log);
  }
  void worker(int id, const std::string& phase) {
    pod(fmt::format("words-edljob-worker-{}", id), kube::worker_role, phase);
  }
  std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), what));
  }
  std::string phase() const {
    return status.is_object() ? kube::text(status, {"status", "phase"}) : "";
  }
  json::value condition(const std::string& type) const {
    for (const auto& c : kube::items(status, {"status", "status", "conditions"}))
      if (kube::text(c, {"type"}) == type)
        return c;
    return nullptr;
  }

  /// Its master and one node run.
  static operated running() {
    operated o;
    o.is_told();
    o.master(0, "Running");
    o.worker(0, "Running");
    o.passes(5s);
    return o;
  }
};

inline constexpr auto makes_master = "POST jobs/pods";
} // namespace troupe::testing
