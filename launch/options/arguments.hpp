#pragma once

#include "launch/options/argument_grammar.hpp"
#include "launch/options/cluster.hpp"
#include "launch/options/hangs.hpp"
#include "launch/options/metrics.hpp"
#include "launch/options/node_check.hpp"
#include "launch/options/policy.hpp"

/// The launcher's options as they are typed, by where they come from, before they mean anything.
namespace troupe::launch {

struct torchrun_arguments {
  std::string nodes = "1:1", processes = "1";
  rendezvous_arguments rendezvous;
  std::int64_t max_restarts = 0;
  double monitor_interval = 0.1;
  std::string start_method = "spawn", event_log_handler = "null";
  std::string redirects = "0", tee = "0", shown;
  std::optional<std::string> duplicate_stdout, duplicate_stderr, logs_specs, numa_binding;
  std::string signals = signals_by_default;
  std::optional<std::int64_t> shutdown_timeout;
};

/// torchrun's options (2.13, and what 2.14 has beside). What needs no further reading goes straight
/// into `o`.
void declare_torchrun(argument_grammar& d, launcher_options& o, torchrun_arguments& w);
/// The grammars, and what torchrun's options say about each other.
result<void> derive_torchrun(launcher_options& o, const torchrun_arguments& w,
                             const machine_facts& machine,
                             const result<scheduler_environment>& around);

/// What dlrover-run has beside torchrun's: known, and refused by name where the feature is missing.
struct dlrover_arguments {
  bool auto_config = false, auto_tuning = false, numa_affinity = false;
  std::int64_t training_port = 60'000;
  std::optional<std::string> accelerator, membind_policy;
};
void declare_dlrover(argument_grammar& d, dlrover_arguments& w, policy_arguments& policy);
/// --auto_config: what NODE_NUM and the GPUs of this machine say of the size, where `said` does
/// not; and the check of at least four nodes.
result<void> apply_auto_config(torchrun_arguments& torchrun, node_check_arguments& check,
                               const argument_grammar::positional& said,
                               const machine_facts& machine, accelerator devices);
/// Before torchrun's options are: they count devices.
result<void> derive_accelerator(launcher_options& o, const dlrover_arguments& w,
                                const std::string& processes, const machine_facts& machine);
result<void> derive_dlrover(launcher_options& o, const dlrover_arguments& w,
                            const machine_facts& machine);

/// Sizes and budgets; for the launcher and the master alike.
option_group policy_group(policy_arguments& w);
option_group hangs_group(hang_arguments& w);
option_group node_check_group(node_check_arguments& w);
/// Options that say how nodes are checked where none is, each with the option that it needs.
std::vector<std::pair<std::string, std::string>>
parts_of_no_check(const std::map<std::string, argument_grammar::given>& said,
                  const node_check_options& o);
option_group topology_group(topology_arguments& w);
option_group planned_end_group(planned_end_arguments& w);
option_group metrics_group(metrics_arguments& w);
option_group cluster_group(cluster_arguments& w);
/// Which account is used with the API server of Kubernetes.
void add_account(option_group& to, kubernetes_account& a);
/// Of actor-master only.
option_group elastic_job_group(cluster_arguments& w);
/// Of the launcher only.
void declare_own_place(argument_grammar& d, launcher_options& o, std::optional<std::string>& above);
result<void> derive_ranks_request(launcher_options& o, const torchrun_arguments& w,
                                  const policy_arguments& policy);

/// What is only ours.
void declare_troupe(argument_grammar& d, launcher_options& o, std::optional<std::string>& python);
/// How much a program tells.
void declare_talk(argument_grammar& d, common_options& c);
/// What all programs have that speak with each other.
void declare_common(argument_grammar& d, common_options& c);
/// Options that only print: help, version, and documents (completion, manual) of a program that has
/// some of its own.
enum class documents { printed, none };
void declare_answers(argument_grammar& d, std::size_t columns, documents what = documents::printed);

/// A launcher's command line, by a grammar that may have options of its own. Only a run needs a
/// script.
enum class script { needed, optional };
parsed<launcher_options> read_launcher(argument_grammar& d,
                                       const std::vector<std::string>& arguments,
                                       const machine_facts& machine, script wanted);
/// The job's token from TROUPE_TOKEN_FILE or TROUPE_TOKEN, unless an option says how to prove
/// oneself.
std::optional<error> derive_common(common_options& c, const machine_facts& machine);
std::optional<error> derive_copy_rate(launcher_options& o);
std::optional<error> derive_interpreter(launcher_options& o,
                                        const std::optional<std::string>& given,
                                        const machine_facts& machine);
std::optional<error> derive_master_away(launcher_options& o);

/// A name that messages can carry.
result<void> check_name(const char* option, const std::string& name,
                        std::size_t most = limits::name_max);

} // namespace troupe::launch
