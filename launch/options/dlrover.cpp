#include "launch/options/arguments.hpp"

#include <fmt/format.h>

/// The options of dlrover-run, and those of MetaX's fork of it. They are not abbreviated there
/// either.
namespace troupe::launch {

namespace {

constexpr auto no_tuning = "there is no tuning of a running job yet";
/// From so many nodes on --auto_config has them checked.
constexpr std::uint32_t checked_from = 4;

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
       {scope::node,
        {"--auto_config"},
        "",
        "Without --nnodes as many nodes as NODE_NUM says, without --nproc-per-node a worker for "
        "each GPU; --network-check from four nodes on",
        into(w.auto_config)},
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
       {scope::node,
        {"--numa-affinity"},
        "",
        "As --numa-binding node, with the memory of that node; without GPUs no worker is bound",
        into(w.numa_affinity)},
       often({"preferred", "bind", "none"},
             {scope::node,
              {"--membind-policy"},
              "NAME",
              "With --numa-affinity: preferred (default), bind (no other memory), or anything else "
              "for any memory",
              into(w.membind_policy)}),
       {scope::worker,
        {"--ucp_device_type"},
        "NAME",
        "Where DeepSpeed's universal checkpoints are converted (cpu)",
        into(policy.planned_end.ucp_device)}}}));
}

result<void> apply_auto_config(torchrun_arguments& torchrun, node_check_arguments& check,
                               const argument_grammar::positional& said,
                               const machine_facts& machine) {
  const auto number = machine.environment.find("NODE_NUM");
  const bool finds_nodes = said.said.count("--nnodes") == 0 && !torchrun.rendezvous.standalone &&
                           number != machine.environment.end() && !number->second.empty();
  if (finds_nodes)
    torchrun.nodes = number->second;
  if (said.said.count("--nproc-per-node") == 0 && machine.gpus > 0)
    torchrun.processes = "gpu";
  if (torchrun.nodes == "auto")
    return {};
  const auto nodes = parse_nodes(torchrun.nodes);
  if (!nodes)
    return finds_nodes ? failure(errc::invalid,
                                 fmt::format("NODE_NUM: '{}' is no number of nodes (--auto_config)",
                                             number->second))
                       : result<void>(tl::make_unexpected(nodes.error()));
  check.network_check = check.network_check || nodes->first >= checked_from;
  return {};
}

namespace {

/// What dlrover-run does by numactl, it leaves out where a machine has no device.
result<void> derive_affinity(launcher_options& o, const dlrover_arguments& w,
                             const machine_facts& machine) {
  if (!w.numa_affinity) {
    if (w.membind_policy)
      o.remarks.emplace_back("--membind-policy has no effect without --numa-affinity");
    return {};
  }
  if (o.numa != numa_binding::none)
    return failure(errc::invalid,
                   "--numa-affinity and --numa-binding exclude each other: both bind "
                   "workers to CPUs");
  if (machine.gpus == 0) {
    o.remarks.emplace_back("--numa-affinity: this machine shows no GPU that workers could be near "
                           "to; none is bound");
    return {};
  }
  const auto policy = w.membind_policy.value_or("preferred");
  o.numa = numa_binding::node;
  o.memory = policy == "preferred" ? memory_binding::preferred
             : policy == "bind"    ? memory_binding::only
                                   : memory_binding::none;
  return {};
}

} // namespace

result<void> derive_dlrover(launcher_options& o, const dlrover_arguments& w,
                            const machine_facts& machine) {
  if (w.accelerator != "nvidia.com/gpu")
    return failure(errc::invalid,
                   fmt::format("--accelerator {}: there is no support for it yet", w.accelerator));
  return derive_affinity(o, w, machine);
}

} // namespace troupe::launch
