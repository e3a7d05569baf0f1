#include "launch/options/arguments.hpp"

#include <fmt/format.h>

/// The options of dlrover-run, and those of MetaX's fork of it. They are not abbreviated there
/// either.
namespace troupe::launch {

namespace {

constexpr auto no_discovery =
    "the size of the job is not found out yet; give --nnodes and --nproc-per-node auto";
constexpr auto no_tuning = "there is no tuning of a running job yet";
constexpr auto no_affinity = "not here; --numa-binding node binds workers to CPUs near their GPUs";

taker nowhere() {
  return [](const std::string&) { return std::nullopt; };
}

option flag_without(const char* what_is_missing, const char* name, const char* about) {
  return without(what_is_missing, {scope::job, {name}, "", about, nowhere()});
}

} // namespace

void declare_dlrover(argument_grammar& d, dlrover_arguments& w, policy_arguments& policy) {
  d.add(in_full(option_group{
      "From dlrover-run: known; refused where the feature is not there yet",
      {{scope::job,
        {"--node_unit"},
        "N",
        "A world has a multiple of so many nodes (1)",
        into(policy.node_unit)},
       flag_without(no_discovery, "--auto_config", "Refused: the job's size is not found out yet"),
       flag_without(no_tuning, "--auto_tunning", "Refused: no tuning of a running job yet"),
       {scope::node,
        {"--save_at_breakpoint"},
        "",
        "Whenever workers fail or are stopped, and not only when the job ends by that, the newest "
        "step in memory (troupe.checkpoint) is written out as well",
        into(policy.save_at_breakpoint)},
       among({"nvidia.com/gpu", "ascend-npu", "mthreads.com/gpu", "metax-tech.com/gpu"},
             {scope::node, {"--accelerator"}, "NAME", "Only nvidia.com/gpu", into(w.accelerator)}),
       {scope::node,
        {"--training_port"},
        "PORT",
        "Has no effect without an Ascend accelerator",
        into(w.training_port)},
       flag_without(no_affinity, "--numa-affinity", "Refused: use --numa-binding node"),
       {scope::node,
        {"--membind-policy"},
        "NAME",
        "Has no effect without --numa-affinity",
        into(w.ignored)},
       {scope::worker,
        {"--ucp_device_type"},
        "NAME",
        "Where DeepSpeed's universal checkpoints are converted (cpu)",
        into(policy.planned_end.ucp_device)}}}));
}

result<void> derive_dlrover(const dlrover_arguments& w) {
  if (w.accelerator != "nvidia.com/gpu")
    return failure(errc::invalid,
                   fmt::format("--accelerator {}: there is no support for it yet", w.accelerator));
  return {};
}

} // namespace troupe::launch
