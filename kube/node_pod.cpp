#include "kube/node_pod.hpp"

#include "kube/elastic_job.hpp"
#include "kube/job_objects.hpp"
#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

json::object variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

json::object variable_of_field(const char* name, const char* path) {
  return {{"name", name},
          {"valueFrom", json::object{{"fieldRef", json::object{{"fieldPath", path}}}}}};
}

json::object variable_of_secret(const char* name, const std::string& secret, const char* key) {
  return {
      {"name", name},
      {"valueFrom", json::object{{"secretKeyRef", json::object{{"name", secret}, {"key", key}}}}}};
}

/// As DLRover's master sets them, whose users' scripts read them.
json::array variables_of(const node_pods_job& job, const node_pod_part& part) {
  const auto rank = std::to_string(part.rank), id = std::to_string(part.id),
             nodes = std::to_string(part.nodes);
  json::array all{variable_of_field("POD_NAME", "metadata.name"),
                  variable_of_field("POD_IP", "status.podIP"),
                  variable_of_field("NODE_IP", "status.hostIP"),
                  variable_of_field("NODE_NAME", "spec.nodeName"),
                  variable("ELASTIC_JOB_NAME", job.name),
                  variable("PET_RDZV_ID", job.name),
                  variable("PET_RDZV_CONF",
                           fmt::format("read_timeout={}", limits::pod_waits_for_master.count())),
                  variable("JOB_UID", job.uid),
                  variable("NODE_TYPE", worker_role),
                  variable("NODE_ID", id),
                  variable("NODE_NUM", nodes),
                  variable("NODE_RANK", rank),
                  variable("WORKER_TYPE", worker_role),
                  variable("WORKER_ID", id),
                  variable("WORKER_NUM", nodes),
                  variable("WORKER_RANK", rank),
                  variable("DLROVER_MASTER_ADDR", job.master_address)};
  if (!job.token_secret.empty())
    all.push_back(variable_of_secret("TROUPE_TOKEN", job.token_secret, "token"));
  return all;
}

bool has_variable(const json::array& variables, const std::string& name) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const json::value& v) { return text(v, {"name"}) == name; });
}

/// Before those of the template, whose values may refer to them. A token that is a file is not
/// given a second time: the launcher refuses both.
void add_variables(json::object& container, const json::array& ours) {
  const auto theirs = items(container, {"env"});
  json::array all;
  for (const auto& each : ours) {
    const auto name = text(each, {"name"});
    const bool is_there = has_variable(theirs, name) ||
                          (name == "TROUPE_TOKEN" && has_variable(theirs, "TROUPE_TOKEN_FILE"));
    if (!is_there)
      all.push_back(each);
  }
  all.insert(all.end(), theirs.begin(), theirs.end());
  container["env"] = std::move(all);
}

void set_memory(json::object& container, const char* kind, std::uint64_t bytes) {
  container["resources"].as_object()[kind].as_object()["memory"] = std::to_string(bytes);
}

/// What is requested grows as the limit does, which it must not exceed.
void raise_memory(json::value& container, std::uint64_t least) {
  const auto limit = memory_of(container, "limits"), request = memory_of(container, "requests");
  auto& object = container.get_object();
  if (limit && *limit < least)
    set_memory(object, "limits", least);
  const auto grows = limit.value_or(request.value_or(0));
  if (request && grows != 0 && grows < least)
    set_memory(object, "requests",
               std::min(least, static_cast<std::uint64_t>(static_cast<double>(*request) *
                                                          static_cast<double>(least) /
                                                          static_cast<double>(grows))));
}

/// In each of the terms, of which one has to hold; a rule names one machine, which is all that is
/// valid for a name.
void avoid(json::object& spec, const std::vector<std::string>& machines) {
  if (machines.empty() || spec.contains("nodeName"))
    return;
  auto& terms = array_at(object_at(object_at(object_at(spec, "affinity"), "nodeAffinity"),
                                   "requiredDuringSchedulingIgnoredDuringExecution"),
                         "nodeSelectorTerms");
  if (terms.empty())
    terms.emplace_back(json::object());
  for (auto& term : terms)
    if (auto* each = term.if_object())
      for (const auto& machine : machines)
        array_at(*each, "matchFields")
            .push_back(json::object{{"key", "metadata.name"},
                                    {"operator", "NotIn"},
                                    {"values", json::array{json::string(machine)}}});
}

} // namespace

std::string node_pod_name(const std::string& job, std::uint64_t id) {
  return name_of_part("", job, fmt::format("edljob-{}-{}", worker_role, id));
}

api_request create_node_pod(const node_pods_job& job, const json::value& pod_template,
                            const node_pod_part& part) {
  json::object pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
  for (const char* key : {"metadata", "spec"})
    if (const auto* given = member(pod_template, {key}))
      pod[key] = *given;
  auto& metadata = object_at(pod, "metadata");
  metadata.erase("generateName");
  metadata["name"] = node_pod_name(job.name, part.id);
  metadata["namespace"] = job.name_space;
  elastic_job owner;
  owner.name = job.name;
  owner.uid = job.uid;
  auto reference = owned_by(owner);
  // To hold up a job's deletion takes a right on jobs that a master need not have, where servers
  // ask.
  reference.erase("blockOwnerDeletion");
  metadata["ownerReferences"] = json::array{std::move(reference)};
  auto& labels = object_at(metadata, "labels");
  labels[job_label] = label_of(job.name);
  labels[job_uid_label] = job.uid;
  labels[role_label] = worker_role;
  labels[index_label] = std::to_string(part.id);
  labels[rank_label] = std::to_string(part.rank);
  labels[relaunch_label] = std::to_string(part.relaunches);
  labels["app.kubernetes.io/managed-by"] = "troupe";
  object_at(metadata, "annotations")[restarts_annotation] = std::to_string(part.restarts);
  if (part.avoided.is_for_a_while)
    object_at(metadata, "annotations")[avoids_annotation] = "true";

  auto& spec = object_at(pod, "spec");
  // What ends is replaced here, perhaps on another machine.
  spec["restartPolicy"] = "Never";
  avoid(spec, part.avoided.machines);
  const auto variables = variables_of(job, part);
  for (auto& container : array_at(spec, "containers"))
    if (auto* each = container.if_object()) {
      add_variables(*each, variables);
      const auto least = part.memory.find(text(container, {"name"}));
      if (least != part.memory.end())
        raise_memory(container, least->second);
    }
  return {"POST", fmt::format("/api/v1/namespaces/{}/pods", escaped(job.name_space)),
          "application/json", json::serialize(pod)};
}

std::optional<std::uint64_t> bytes_of_quantity(const std::string& text) {
  const auto end = text.find_first_not_of("0123456789.");
  const auto digits = text.substr(0, end);
  auto suffix = end == std::string::npos ? std::string() : text.substr(end);
  if (digits.empty() || digits.size() > 24 || std::count(digits.begin(), digits.end(), '.') > 1 ||
      digits == ".")
    return std::nullopt;
  double value = std::strtod(digits.c_str(), nullptr);
  static const std::pair<const char*, double> units[] = {
      {"", 1},        {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},
      {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  const auto* unit = std::find_if(std::begin(units), std::end(units),
                                  [&](const auto& u) { return suffix == u.first; });
  if (unit != std::end(units)) {
    value *= unit->second;
  } else if ((suffix[0] == 'e' || suffix[0] == 'E') && suffix.size() > 1 && suffix.size() <= 3 &&
             suffix.find_first_not_of("0123456789", 1) == std::string::npos) {
    value *= std::pow(10, std::atoi(suffix.c_str() + 1));
  } else {
    return std::nullopt;
  }
  if (!(value < 0x1p63))
    return std::nullopt;
  return static_cast<std::uint64_t>(std::ceil(value));
}

std::uint64_t raised_memory(std::uint64_t bytes, std::uint64_t most) {
  return std::max(bytes, std::min(most, bytes + bytes / 2));
}

std::optional<std::uint64_t> memory_of(const json::value& container, const char* kind) {
  const auto* found = member(container, {"resources", kind, "memory"});
  if (found == nullptr)
    return std::nullopt;
  return bytes_of_quantity(found->is_string() ? std::string(found->get_string())
                                              : json::serialize(*found));
}

} // namespace troupe::kube
