#include "launch/options/arguments.hpp"
#include "launch/options/metrics.hpp"
#include "launch/options/values.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

/// actor-operator's command line.
namespace troupe::launch {

namespace {

struct operator_arguments {
  std::optional<std::int64_t> wait_limit; ///< seconds
  std::string gang = "none", mark_faulty = "none";
  std::int64_t group_size = 0, master_metrics_port = 0;
  metrics_arguments metrics;
};

option_group jobs_group(operator_program_options& o) {
  return {"Jobs",
          {{scope::process,
            {"--namespace"},
            "NAME",
            "Only of this namespace (all)",
            into(o.name_space)},
           {scope::process,
            {"--master-image"},
            "IMAGE",
            "Of masters: an image with actor-master; needed",
            into(o.master_image)},
           among({"Always", "IfNotPresent", "Never"},
                 {scope::process,
                  {"--master-image-pull-policy"},
                  "POLICY",
                  "When it is pulled (as the cluster does by itself)",
                  into(o.master_image_pull_policy)}),
           {scope::process,
            {"--topology-config-map"},
            "NAME",
            "ConfigMap in a job's namespace whose topology_config says where machines are in the "
            "network (node-topology-config)",
            into(o.topology_config)}}};
}

option_group gang_group(operator_program_options& o, operator_arguments& w) {
  return {"Gangs",
          {among({"none", "volcano", "scheduler-plugins"},
                 {scope::process,
                  {"--gang"},
                  "SCHEDULER",
                  "Have the pods of a job placed together, or none of them (none)",
                  into(w.gang)}),
           {scope::process,
            {"--group-size"},
            "N",
            "With Volcano: so many nodes within one group of a dragonfly network (0: any)",
            into(w.group_size)},
           {scope::process,
            {"--group-label"},
            "KEY",
            "The machines' label that tells these groups apart",
            into(o.group_label)}}};
}

option_group cluster_rights_group(operator_program_options& o, operator_arguments& w) {
  option_group group{
      "Rights",
      {among(
           {"none", "taint", "cordon"},
           {scope::process,
            {"--mark-faulty"},
            "HOW",
            "What jobs' masters do with a machine whose hardware is broken (none): they are bound "
            "to the ClusterRole LEASE-machines for it",
            into(w.mark_faulty)}),
       {scope::process,
        {"--lease-name"},
        "NAME",
        "Of several operators the one that holds this lease, in their namespace, acts "
        "(troupe-operator)",
        into(o.lease)}}};
  add_account(group, o.account);
  return group;
}

option_group operator_metrics_group(operator_arguments& w) {
  return {"What a monitoring system and a kubelet read",
          {{scope::process,
            {"--metrics-listen"},
            "[HOST:]PORT",
            "Serve there, to all that can reach it: metrics for Prometheus at /metrics; /healthz, "
            "which is well while the operator's actors run; /readyz, while the API server answers "
            "it. Without HOST on every address (off)",
            into(w.metrics.listen)},
           {scope::process,
            {"--master-metrics-port"},
            "PORT",
            "Where masters serve the metrics of their jobs (0: nowhere)",
            into(w.master_metrics_port)}}};
}

std::optional<std::string> derive_metrics(operator_program_options& o,
                                          const operator_arguments& w) {
  constexpr std::int64_t port_max = 65'535;
  const auto metrics = launch::derive_metrics(w.metrics);
  if (!metrics)
    return metrics.error().what;
  o.metrics_listen = metrics->listen;
  if (w.master_metrics_port < 0 || w.master_metrics_port > port_max)
    return fmt::format("--master-metrics-port: {}; 0 to {} are possible", w.master_metrics_port,
                       port_max);
  o.master_metrics_port = static_cast<std::uint16_t>(w.master_metrics_port);
  return std::nullopt;
}

option_group wait_group(operator_program_options& o, operator_arguments& w) {
  return {"Instead of being an operator",
          {{scope::process,
            {"--wait-for-job"},
            "NAME",
            "Wait for the end of this ElasticJob of --namespace, and end with 0 if it has "
            "succeeded; else tell why it has not",
            into(o.awaited_job)},
           {scope::process,
            {"--wait-limit"},
            "SECONDS",
            "For so long at most (300)",
            into(w.wait_limit)}}};
}

/// A wait needs only to know where the job is: an option of an operator's would not be heard.
std::optional<std::string> derive_wait(operator_program_options& o, const operator_arguments& w) {
  constexpr std::int64_t limit_max = 7L * 24 * 3600;
  const operator_program_options silent;
  if (!o.master_image.empty() || !o.master_image_pull_policy.empty() || !o.group_label.empty() ||
      !w.metrics.listen.empty() || o.lease != silent.lease || w.gang != "none" ||
      w.mark_faulty != "none" || w.group_size != 0 || w.master_metrics_port != 0 ||
      o.topology_config != silent.topology_config)
    return "--wait-for-job runs no operator: beside it only --namespace, --wait-limit and where "
           "the "
           "API server is can be said";
  if (o.name_space.empty())
    return "--wait-for-job needs --namespace: the one that the job is in";
  if (o.awaited_job->empty())
    return "--wait-for-job: the name of a job is needed";
  if (w.wait_limit && (*w.wait_limit < 1 || *w.wait_limit > limit_max))
    return fmt::format("--wait-limit: {}; 1 to {} seconds are possible", *w.wait_limit, limit_max);
  if (w.wait_limit)
    o.wait_limit = std::chrono::seconds(*w.wait_limit);
  return std::nullopt;
}

std::optional<std::string> derive(operator_program_options& o, const operator_arguments& w) {
  if (auto wrong = check_account(o.account); !wrong)
    return wrong.error().what;
  if (o.awaited_job)
    return derive_wait(o, w);
  if (w.wait_limit)
    return "--wait-limit needs --wait-for-job";
  if (o.master_image.empty())
    return "--master-image is needed: an image with actor-master";
  if (w.group_size < 0 || w.group_size > limits::nodes_max)
    return fmt::format("--group-size: {}; 0 to {} are possible", w.group_size, limits::nodes_max);
  using gang = operator_program_options::gang;
  o.scheduling = w.gang == "volcano"             ? gang::volcano
                 : w.gang == "scheduler-plugins" ? gang::scheduler_plugins
                                                 : gang::none;
  if (w.group_size != 0 && o.scheduling != gang::volcano)
    return "--group-size needs --gang volcano";
  o.group_size = static_cast<std::uint32_t>(w.group_size);
  o.mark_faulty = w.mark_faulty == "none" ? "" : w.mark_faulty;
  return derive_metrics(o, w);
}

} // namespace

parsed<operator_program_options> parse_operator(const std::vector<std::string>& arguments,
                                                const machine_facts& machine) {
  operator_program_options o;
  operator_arguments w;
  argument_grammar d("actor-operator", "[options]",
                     "Runs DLRover's ElasticJobs in Kubernetes: makes for each a master, which "
                     "makes the pods of its nodes. Runs in a pod itself, or outside of the cluster "
                     "with --kubeconfig; see docs/kubernetes.md.");
  d.add(jobs_group(o));
  d.add(gang_group(o, w));
  d.add(cluster_rights_group(o, w));
  d.add(operator_metrics_group(w));
  d.add(wait_group(o, w));
  declare_talk(d, o.common);
  declare_answers(d, machine.columns);
  auto said = d.parse(arguments, machine.environment);
  if (auto* text = std::get_if<just_print>(&said))
    return *text;
  if (auto* wrong = std::get_if<refusal>(&said))
    return *wrong;
  if (const auto& rest = std::get<argument_grammar::positional>(said).rest; !rest.empty())
    return refusal{fmt::format("'{}' is no option of actor-operator (see --help)", rest.front())};
  if (auto wrong = derive(o, w))
    return refusal{*wrong};
  return o;
}

} // namespace troupe::launch
