#include "tests/kube/simulated_kubelet.hpp"

#include "kube/objects.hpp"

#include <fmt/format.h>

namespace troupe::testing {

namespace {

namespace json = boost::json;

json::array containers(json::object state, const json::value& pod) {
  auto name = std::string("main");
  if (const auto& all = kube::items(pod, {"spec", "containers"}); !all.empty())
    name = kube::text(all[0], {"name"});
  return {json::object{{"name", name}, {"state", std::move(state)}}};
}

json::object condition(const char* type, const char* status, const char* reason,
                       const std::string& message) {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", message}};
}

} // namespace

void simulated_kubelet::phase(const std::string& pod, const char* phase, json::object more) {
  server_.change(path(pod), [&](json::object& object) {
    auto& status = object["status"].as_object();
    status["phase"] = phase;
    for (auto& [key, value] : more)
      status[key] = value;
  });
}

void simulated_kubelet::bind(const std::string& pod, const std::string& machine) {
  server_.change(path(pod), [&](json::object& object) {
    auto& spec = object["spec"];
    (spec.is_object() ? spec.get_object() : spec.emplace_object())["nodeName"] = machine;
    object["status"].as_object()["conditions"] =
        json::array{condition("PodScheduled", "True", "", "")};
  });
}

void simulated_kubelet::run(const std::string& pod, const std::string& address) {
  const auto* object = server_.find(path(pod));
  if (object != nullptr)
    phase(pod, "Running",
          {{"podIP", address},
           {"containerStatuses", containers({{"running", json::object()}}, *object)}});
}

void simulated_kubelet::end(const std::string& pod, int exit_code, const std::string& reason) {
  const auto* object = server_.find(path(pod));
  if (object == nullptr)
    return;
  json::object state{
      {"exitCode", exit_code},
      {"reason", reason.empty() ? (exit_code == 0 ? "Completed" : "Error") : reason}};
  phase(pod, exit_code == 0 ? "Succeeded" : "Failed",
        {{"containerStatuses", containers({{"terminated", std::move(state)}}, *object)}});
}

void simulated_kubelet::evict(const std::string& pod, const std::string& reason) {
  phase(pod, "Failed", {{"reason", reason}, {"message", "The node was low on resource: memory."}});
}

void simulated_kubelet::disrupt(const std::string& pod) {
  server_.change(path(pod), [](json::object& object) {
    auto& conditions = object["status"].as_object()["conditions"];
    (conditions.is_array() ? conditions.get_array() : conditions.emplace_array())
        .push_back(condition("DisruptionTarget", "True", "PreemptionByScheduler",
                             "preempting to accommodate a higher priority pod"));
  });
}

void simulated_kubelet::unschedulable(const std::string& pod, const std::string& message) {
  server_.change(path(pod), [&](json::object& object) {
    object["status"].as_object()["conditions"] =
        json::array{condition("PodScheduled", "False", "Unschedulable", message)};
  });
}

void simulated_kubelet::waiting(const std::string& pod, const std::string& reason,
                                const std::string& message) {
  const auto* object = server_.find(path(pod));
  if (object != nullptr)
    phase(pod, "Pending",
          {{"containerStatuses",
            containers({{"waiting", json::object{{"reason", reason}, {"message", message}}}},
                       *object)}});
}

} // namespace troupe::testing
