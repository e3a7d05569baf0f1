// What is read of the pod of a node.

#include "kube/job_objects.hpp"
#include "kube/node_pod.hpp"
#include "kube/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// What kubelet and scheduler write as the reason of a pod that they have not let run on.
/// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
constexpr const char* reasons_of_the_cluster[] = {"Evicted",
                                                  "Preempting",
                                                  "Preempted",
                                                  "NodeLost",
                                                  "NodeShutdown",
                                                  "Shutdown",
                                                  "Terminated",
                                                  "UnexpectedAdmissionError",
                                                  "NodeAffinity",
                                                  "NodePorts",
                                                  "TopologyAffinityError"};

/// Of an exit that is the machine's fault.
constexpr std::int64_t hardware_codes[] = {14, 201, 202};
constexpr std::int64_t wrong_usage_code = 2;
/// DLRover's agent ends with it when the kernel has ended a process for memory.
constexpr std::int64_t out_of_memory_code = 247;
constexpr std::size_t words_of_server_max = 300;

template<class Number>
std::optional<Number> number_in(const std::string& text) {
  Number value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, value);
  return wrong == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Behind the last '-'. One that no pod of ours can have is none: further ids go up from it.
std::uint64_t id_in(const std::string& name) {
  constexpr std::uint64_t most = 1'000'000'000;
  const auto id = number_in<std::uint64_t>(name.substr(name.rfind('-') + 1)).value_or(0);
  return id < most ? id : 0;
}

std::string line_of_words(std::string words) {
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (words.size() > words_of_server_max)
    words = words.substr(0, words_of_server_max) + "…";
  return words;
}

std::string with_message(const std::string& reason, const std::string& message) {
  return line_of_words(message.empty() ? reason : reason + ": " + message);
}

const json::value* condition(const json::value& pod, const char* type, const char* status) {
  for (const auto& each : items(pod, {"status", "conditions"}))
    if (text(each, {"type"}) == type && text(each, {"status"}) == status)
      return &each;
  return nullptr;
}

bool is_of_the_cluster(const std::string& reason) {
  return reason.rfind("OutOf", 0) == 0 || // of CPU, pods, a device: the machine had none left
         std::any_of(std::begin(reasons_of_the_cluster), std::end(reasons_of_the_cluster),
                     [&](const char* r) { return reason == r; });
}

/// Of the first container, which is the node's, unless only another one has failed.
std::optional<std::int64_t> exit_code(const json::value& pod) {
  const auto& containers = items(pod, {"spec", "containers"});
  const auto first = containers.empty() ? std::string() : text(containers[0], {"name"});
  std::optional<std::int64_t> any;
  for (const auto& each : items(pod, {"status", "containerStatuses"})) {
    const auto code = number(each, {"state", "terminated", "exitCode"});
    if (code && (!any || *any == 0 || (*code != 0 && text(each, {"name"}) == first)))
      any = code;
  }
  return any;
}

memory_spent spent_by(const json::value& pod, const std::string& container) {
  for (const auto& each : items(pod, {"spec", "containers"}))
    if (text(each, {"name"}) == container)
      return {container,
              memory_of(each, "limits").value_or(memory_of(each, "requests").value_or(0))};
  return {container, 0};
}

void read_end(const json::value& pod, node_pod& out) {
  for (const auto& each : items(pod, {"status", "containerStatuses"}))
    if (text(each, {"state", "terminated", "reason"}) == "OOMKilled")
      out.out_of_memory.push_back(spent_by(pod, text(each, {"name"})));
  const auto code = exit_code(pod);
  const auto reason = text(pod, {"status", "reason"});
  const auto* disrupted = condition(pod, "DisruptionTarget", "True");
  const auto ended = [&out](pod_end end, std::string words) {
    out.end = end;
    out.end_in_words = std::move(words);
  };
  if (text(pod, {"status", "phase"}) == "Succeeded")
    return ended(pod_end::done, "it has ended with 0");
  if (disrupted != nullptr)
    return ended(pod_end::taken,
                 with_message(text(*disrupted, {"reason"}), text(*disrupted, {"message"})));
  if (is_of_the_cluster(reason))
    return ended(pod_end::taken, with_message(reason, text(pod, {"status", "message"})));
  if (!out.out_of_memory.empty() || code == out_of_memory_code)
    return ended(pod_end::out_of_memory, "it was out of memory");
  if (!code)
    return ended(pod_end::failed, with_message(reason.empty() ? "it has failed" : reason,
                                               text(pod, {"status", "message"})));
  auto words = fmt::format("it has ended with {}", *code);
  if (*code == wrong_usage_code)
    ended(pod_end::wrong_usage, words + " (the command line is wrong)");
  else if (std::find(std::begin(hardware_codes), std::end(hardware_codes), *code) !=
           std::end(hardware_codes))
    ended(pod_end::hardware, words + " (hardware)");
  else
    ended(pod_end::failed, std::move(words));
}

void read_wait(const json::value& pod, node_pod& out) {
  for (const char* kind : {"initContainerStatuses", "containerStatuses"})
    for (const auto& each : items(pod, {"status", kind})) {
      const auto reason = text(each, {"state", "waiting", "reason"});
      if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing")
        continue;
      // Both are told in turn for one image.
      out.waits_for_image = reason == "ErrImagePull" || reason == "ImagePullBackOff" ||
                            reason == "InvalidImageName" || reason == "ErrImageNeverPull";
      out.waits_for = out.waits_for_image ? "image" : reason;
      out.waits_for_in_words = with_message(reason, text(each, {"state", "waiting", "message"}));
      return;
    }
  if (const auto* unplaced = condition(pod, "PodScheduled", "False")) {
    out.waits_for = text(*unplaced, {"reason"});
    out.waits_for_in_words = with_message(out.waits_for, text(*unplaced, {"message"}));
  }
}

std::vector<std::string> addresses_of(const json::value& pod) {
  std::vector<std::string> all;
  if (auto first = text(pod, {"status", "podIP"}); !first.empty())
    all.push_back(std::move(first));
  for (const auto& each : items(pod, {"status", "podIPs"}))
    if (auto ip = text(each, {"ip"}); !ip.empty() && ip != (all.empty() ? "" : all[0]))
      all.push_back(std::move(ip));
  return all;
}

} // namespace

node_pod read_node_pod(const json::value& object) {
  node_pod out;
  out.key = key_of(object);
  out.name = text(object, {"metadata", "name"});
  out.uid = text(object, {"metadata", "uid"});
  out.owner = controller_of(object);
  out.created = text(object, {"metadata", "creationTimestamp"});
  out.role = label(object, role_label);
  out.rank = number_in<std::uint32_t>(label(object, rank_label));
  out.id = id_in(out.name);
  out.relaunches = number_in<std::uint32_t>(label(object, relaunch_label)).value_or(0);
  out.restarts = number_in<std::uint32_t>(annotation(object, restarts_annotation)).value_or(0);
  out.is_terminating = !text(object, {"metadata", "deletionTimestamp"}).empty();
  out.machine = text(object, {"spec", "nodeName"});
  out.avoids_for_a_while = annotation(object, avoids_annotation) == "true";
  out.addresses = addresses_of(object);
  const auto phase = text(object, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") {
    out.phase = pod_phase::ended;
    read_end(object, out);
  } else if (phase == "Running" || phase == "Unknown") {
    out.phase = pod_phase::running;
  } else {
    read_wait(object, out);
  }
  return out;
}

} // namespace troupe::kube
