#include "tests/kube/simulated_machines.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace troupe::testing {

namespace {

namespace json = boost::json;

constexpr auto machines_at = "/api/v1/nodes/";

kube::api_answer refused(unsigned status, const std::string& message) {
  return {status, json::serialize(json::object{{"kind", "Status"}, {"message", message}}), {}};
}

} // namespace

kube::api_answer simulated_machines::answer(const kube::api_request& r) {
  asked.push_back(r);
  const std::string pods_at = "/api/v1/namespaces/jobs/pods?fieldSelector=";
  if (r.method == "GET" && r.target.rfind(pods_at, 0) == 0) {
    const auto rest = r.target.substr(pods_at.size());
    json::array items;
    for (const auto& p : pods)
      if (const auto which = rest.substr(0, rest.find('&'));
          which == kube::escaped("status.podIP=" + p.address) ||
          which == kube::escaped("metadata.name=" + p.name))
        items.push_back(json::object{
            {"spec", p.machine.empty() ? json::object{} : json::object{{"nodeName", p.machine}}},
            {"status", json::object{{"phase", p.phase}, {"startTime", p.started}}}});
    return {200, json::serialize(json::object{{"items", items}}), {}};
  }
  if (r.target.rfind(machines_at, 0) != 0)
    return refused(404, "the server could not find the requested resource");
  const auto name = r.target.substr(std::string(machines_at).size());
  const auto found = machines.find(name);
  if (found == machines.end())
    return refused(404, "nodes \"" + name + "\" not found");
  if (r.method == "PATCH")
    return change(found->second, r.body);
  const auto& m = found->second;
  json::object spec;
  if (!m.taints.is_null())
    spec["taints"] = m.taints;
  if (m.unschedulable)
    spec["unschedulable"] = true;
  const json::object metadata{{"name", name}, {"resourceVersion", std::to_string(m.version)}};
  return {200, json::serialize(json::object{{"metadata", metadata}, {"spec", spec}}), {}};
}

/// All of a patch or nothing of it.
kube::api_answer simulated_machines::change(machine& m, const std::string& body) const {
  auto next = m;
  const auto patch = json::parse(body);
  for (const auto& each : patch.as_array()) {
    const auto& op = each.as_object();
    const auto path = std::string(op.at("path").as_string());
    const auto& value = op.at("value");
    if (op.at("op") == "test") {
      if (path != "/metadata/resourceVersion" || value != std::to_string(m.version).c_str())
        return refused(failed_test, "the server rejected our request due to an error in our "
                                    "request");
    } else if (path == "/spec/taints") {
      next.taints = value;
    } else if (path == "/spec/taints/-") {
      if (!next.taints.is_array())
        return refused(422, "doc is missing path: /spec/taints/-");
      next.taints.as_array().push_back(value);
    } else if (path == "/spec/unschedulable") {
      next.unschedulable = value.as_bool();
    } else {
      return refused(422, "unexpected path: " + path);
    }
  }
  ++next.version;
  m = next;
  return {200, "{}", {}};
}

} // namespace troupe::testing
