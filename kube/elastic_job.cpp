#include "kube/elastic_job.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"
#include "kube/recovery_words.hpp"
#include "runtime/base/fnv1a.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr auto nodes_annotation = "troupe/nnodes";
constexpr auto arguments_annotation = "troupe/master-args";
constexpr auto memory_annotation = "troupe/memory-max";
constexpr auto keep_annotation = "troupe/ttl-seconds-after-finished";

std::optional<std::uint32_t> whole(const std::string& text) {
  std::uint32_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, value);
  return bad == std::errc() && stop == end && !text.empty() ? std::optional(value) : std::nullopt;
}

/// MIN of the first --nnodes that a command or its arguments have, as far as it can be told without
/// a shell: "2:4" and "2:$NODE_NUM" say 2; one number, or one variable, is all nodes. 1: none has
/// it.
std::uint32_t typed_min(const json::value& pod, std::uint32_t all) {
  std::string words;
  for (const auto& container : items(pod, {"spec", "containers"}))
    for (const char* field : {"command", "args"})
      for (const auto& word : items(container, {field}))
        if (word.is_string())
          words += std::string(word.as_string()) + " ";
  constexpr std::string_view option = "--nnodes";
  auto at = words.find(option);
  if (at == std::string::npos)
    return 1;
  at = words.find_first_not_of(" =\"'", at + option.size());
  if (at == std::string::npos)
    return 1;
  const auto value = words.substr(at, words.find_first_of(" \"'\n\\", at) - at);
  const auto colon = value.find(':');
  if (colon == std::string::npos)
    return all;
  return whole(value.substr(0, colon)).value_or(1);
}

/// Reads on after a mistake; the first one counts.
class reader {
 public:
  explicit reader(const json::value& object)
      : object_(object), job_(elastic_job_identity(object)) {}

  result<elastic_job> read() {
    const auto* spec = member(object_, {"spec"});
    if (spec == nullptr)
      return failure(errc::invalid, "spec is missing");
    read_strategy(*spec);
    read_worker(*spec);
    read_nodes();
    read_arguments();
    read_keep();
    read_recovery();
    job_.memory_max = annotation(object_, memory_annotation);
    if (mistake_)
      return failure(errc::invalid, *mistake_);
    return std::move(job_);
  }

 private:
  void refuse(const std::string& field, const std::string& why) {
    if (!mistake_)
      mistake_ = field + " " + why;
  }

  /// Nothing: the field is not there, or wrong.
  std::optional<std::uint32_t> count_in(const json::value& of, const char* field,
                                        const std::string& path, std::int64_t least,
                                        std::int64_t most) {
    const auto* found = member(of, {field});
    if (found == nullptr || found->is_null())
      return std::nullopt;
    const auto value = number(of, {field});
    if (value && *value >= least && *value <= most)
      return static_cast<std::uint32_t>(*value);
    refuse(path + "." + field, fmt::format("is {}: a whole number from {} to {} is possible",
                                           json::serialize(*found), least, most));
    return std::nullopt;
  }

  void read_strategy(const json::value& spec) {
    const auto strategy = text(spec, {"distributionStrategy"});
    if (!strategy.empty() && strategy != "AllreduceStrategy")
      refuse("spec.distributionStrategy",
             fmt::format("is {}: only AllreduceStrategy is possible", strategy));
    const auto mode = text(spec, {"optimizeMode"});
    if (mode == "cluster")
      job_.remarks.emplace_back("spec.optimizeMode cluster needs DLRover's Brain service and is "
                                "taken as single-job");
    // The second is how DLRover spells it.
    else if (!mode.empty() && mode != "single-job" && mode != "manunal" && mode != "manual")
      refuse("spec.optimizeMode", fmt::format("is {}: single-job and manual are possible", mode));
  }

  void read_worker(const json::value& spec) {
    const auto* roles = member(spec, {"replicaSpecs"});
    const auto* by_name = roles != nullptr ? roles->if_object() : nullptr;
    const auto* worker = by_name != nullptr ? by_name->if_contains("worker") : nullptr;
    if (worker == nullptr || !worker->is_object())
      return refuse("spec.replicaSpecs.worker", "is missing: its pods train");
    for (const auto& role : *by_name)
      if (const std::string name(role.key()); name == "master" || name == "dlrover-master")
        job_.remarks.push_back(fmt::format("spec.replicaSpecs.{} is left out: the operator makes "
                                           "the master's pod itself",
                                           name));
      else if (name != "worker")
        refuse("spec.replicaSpecs." + name, "is no role of an AllreduceStrategy: worker is");
    const std::string path = "spec.replicaSpecs.worker";
    job_.nodes.max = count_in(*worker, "replicas", path, 1, limits::job_nodes_max).value_or(1);
    // DLRover's own spelling, and the one of its users' guide.
    for (const char* field : {"restartCount", "restartCounts"})
      if (const auto n = count_in(*worker, field, path, 0, limits::pod_restarts_max))
        job_.restarts = *n;
    if (is_true(*worker, {"autoScale"}))
      job_.remarks.push_back(path + ".autoScale: only replicas, a ScalePlan and actor-shell scale "
                                    "change the number of nodes");
    read_template(*worker, path);
  }

  /// Only what a job cannot do without; the API server judges the rest.
  void read_template(const json::value& worker, const std::string& path) {
    const auto* found = member(worker, {"template"});
    const auto& containers = items(worker, {"template", "spec", "containers"});
    if (containers.empty())
      return refuse(path + ".template.spec.containers", "is missing: one container trains");
    for (std::size_t i = 0; i < containers.size(); ++i)
      for (const char* field : {"name", "image"})
        if (text(containers[i], {field}).empty())
          refuse(fmt::format("{}.template.spec.containers[{}].{}", path, i, field), "is missing");
    job_.pod_template = found->as_object();
  }

  void read_nodes() {
    const auto nodes = annotation(object_, nodes_annotation);
    const auto range = read_node_range(nodes);
    if (nodes.empty()) {
      job_.nodes.min = std::min(job_.nodes.max, typed_min(job_.pod_template, job_.nodes.max));
      return;
    }
    if (!range)
      return refuse_annotation(nodes_annotation,
                               fmt::format("is '{}': MIN:MAX is possible", nodes));
    // `kubectl scale` and an autoscaler change replicas alone.
    job_.nodes.min = std::min(range->min, job_.nodes.max);
    if (range->max != job_.nodes.max)
      job_.remarks.push_back(fmt::format("metadata.annotations['{}'] is '{}': the fewest nodes are "
                                         "taken from it, and the most are replicas, {}",
                                         nodes_annotation, nodes, job_.nodes.max));
  }

  void read_arguments() {
    const auto arguments = annotation(object_, arguments_annotation);
    if (arguments.empty())
      return;
    const auto list = parsed(arguments);
    const auto* words = list ? list->if_array() : nullptr;
    if (words == nullptr ||
        !std::all_of(words->begin(), words->end(), [](const auto& w) { return w.is_string(); }))
      return refuse_annotation(arguments_annotation,
                               R"(is no list of texts in JSON, as ["--network-check"])");
    for (const auto& w : *words)
      job_.master_arguments.emplace_back(w.as_string());
  }

  void read_keep() {
    const auto keep = annotation(object_, keep_annotation);
    if (keep.empty())
      return;
    if (const auto seconds = whole(keep))
      job_.keep_for = std::chrono::seconds(*seconds);
    else
      refuse_annotation(keep_annotation, fmt::format("is '{}': seconds are possible", keep));
  }

  void read_recovery() {
    const auto remarks = recovery_remarks(object_);
    job_.remarks.insert(job_.remarks.end(), remarks.begin(), remarks.end());
  }

  void refuse_annotation(const char* key, const std::string& why) {
    refuse(fmt::format("metadata.annotations['{}']", key), why);
  }

  const json::value& object_;
  elastic_job job_;
  std::optional<std::string> mistake_;
};

} // namespace

std::optional<node_range> read_node_range(const std::string& text) {
  const auto colon = text.find(':');
  const auto min = whole(text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : whole(text.substr(colon + 1));
  if (!min || !max || *min == 0 || *min > *max || *max > limits::job_nodes_max)
    return std::nullopt;
  return node_range{*min, *max};
}

elastic_job elastic_job_identity(const json::value& object) {
  elastic_job job;
  job.name = text(object, {"metadata", "name"});
  job.name_space = text(object, {"metadata", "namespace"});
  job.uid = text(object, {"metadata", "uid"});
  job.version = text(object, {"metadata", "resourceVersion"});
  job.generation = number(object, {"metadata", "generation"}).value_or(0);
  job.is_being_deleted = !text(object, {"metadata", "deletionTimestamp"}).empty();
  for (const auto& f : items(object, {"metadata", "finalizers"}))
    if (f.is_string())
      job.finalizers.emplace_back(f.as_string());
  job.is_suspended = is_true(object, {"spec", "suspend"});
  job.phase = text(object, {"status", "phase"});
  return job;
}

result<elastic_job> read_elastic_job(const json::value& object) {
  return reader(object).read();
}

std::string name_of_part(const std::string& prefix, const std::string& job,
                         const std::string& suffix, std::size_t limit) {
  const auto joined = [&](const std::string& middle) {
    return (prefix.empty() ? "" : prefix + "-") + middle + (suffix.empty() ? "" : "-" + suffix);
  };
  auto middle = job;
  if (joined(middle).size() <= limit && job.find('.') == std::string::npos)
    return joined(middle);
  fnv1a all;
  all.take(job);
  const auto number = fmt::format("-{:08x}", static_cast<std::uint32_t>(all.value()));
  std::replace(middle.begin(), middle.end(), '.', '-');
  if (const auto size = joined(middle + number).size(); size > limit)
    middle.resize(middle.size() - std::min(middle.size(), size - limit));
  while (!middle.empty() && middle.back() == '-')
    middle.pop_back();
  return joined(middle + number);
}

} // namespace troupe::kube
