#include "kube/recovery_words.hpp"

#include "kube/objects.hpp"
#include "runtime/base/recover_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr auto enable_label = "process-recover-enable", scheduling_label = "fault-scheduling",
               strategy_annotation = "recover-strategy";

struct placed_label {
  std::string place, value;
};

/// The job's own goes before the template's.
placed_label label_on(const json::value& job, const char* key) {
  if (auto own = label(job, key); !own.empty())
    return {fmt::format("metadata.labels['{}']", key), std::move(own)};
  const auto* worker = member(job, {"spec", "replicaSpecs", "worker", "template"});
  return {fmt::format("spec.replicaSpecs.worker.template.metadata.labels['{}']", key),
          worker != nullptr ? label(*worker, key) : std::string()};
}

/// No mistake of the job's: a label that changes nothing must not keep it from running.
std::string unknown_value(const std::string& place, const std::string& value,
                          const std::string& known) {
  return fmt::format("{} is '{}', which is not known here and changes nothing: {}", place, value,
                     known);
}

std::string effect_of_enabling(const std::string& value) {
  return fmt::format("there is no recovery inside of a running process yet{}; {}",
                     value == "on" ? "" : " that it would switch off", recovery_today);
}

std::string effect_of_scheduling(const std::string& value) {
  return value == "off"
             ? "a pod that has failed is made again nevertheless, as often as restartCounts allows"
             : "a pod that has failed is made again, as often as restartCounts allows; "
               "the operator makes no difference between force and grace";
}

/// A label with one of these values.
void read_label(const json::value& job, const char* key, const std::vector<std::string>& known,
                std::string (*effect)(const std::string&), std::vector<std::string>& remarks) {
  const auto [place, value] = label_on(job, key);
  if (value.empty())
    return;
  const bool is_known = std::find(known.begin(), known.end(), value) != known.end();
  remarks.push_back(
      is_known
          ? fmt::format("{} is '{}': {}", place, value, effect(value))
          : unknown_value(place, value, fmt::format("{} are possible", fmt::join(known, ", "))));
}

} // namespace

std::vector<std::string> recovery_remarks(const json::value& job) {
  std::vector<std::string> remarks;
  read_label(job, enable_label, {"on", "pause", "off"}, effect_of_enabling, remarks);
  read_label(job, scheduling_label, {"force", "grace", "off"}, effect_of_scheduling, remarks);
  const auto strategy = annotation(job, strategy_annotation);
  if (strategy.empty())
    return remarks;
  const auto place = fmt::format("metadata.annotations['{}']", strategy_annotation);
  const auto unknown = unknown_recover_strategy(strategy);
  remarks.push_back(
      unknown
          ? unknown_value(place, strategy,
                          fmt::format("'{}' is none of {}", *unknown, recover_strategies()))
          : fmt::format("{} is '{}': {}", place, strategy, effect_of_recover_strategy(strategy)));
  return remarks;
}

} // namespace troupe::kube
