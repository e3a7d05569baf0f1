#include "launch/options/arguments.hpp"

#include <fmt/format.h>

/// The options of dlrover-run, and those of MetaX's fork of it. They are not abbreviated there
/// either.
namespace troupe::launch {

namespace {

/// From so many nodes on --auto_config has them checked.
constexpr std::uint32_t checked_from = 4;

} // namespace

void declare_dlrover(argument_grammar& d, dlrover_arguments& w, policy_arguments& policy) {
  d.add(in_full(option_group{
      "From dlrover-run",
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
       {scope::node,
        {"--auto_tunning"},
        "",
        "Workers get a file with settings for DLRover's data loader (DLROVER_PARAL_CONFIG_PATH), "
        "which actor-shell set changes while they run; nothing else does",
        into(w.auto_tuning)},
       {scope::node,
        {"--save_at_breakpoint"},
        "",
        "Whenever workers fail or are stopped, and not only when the job ends by that, the newest "
        "step in memory (troupe.checkpoint) is written out as well",
        into(policy.save_at_breakpoint)},
       among(accelerator_words(),
             {scope::node,
              {"--accelerator"},
              "NAME",
              "The devices of this node: nvidia.com/gpu, ascend-npu, mthreads.com/gpu or "
              "metax-tech.com/gpu (nvidia.com/gpu)",
              into(w.accelerator)}),
       {scope::node,
        {"--training_port"},
        "PORT",
        "The first port of HCCL, for Ascend: HCCL_IF_BASE_PORT of the workers, unless it is set; "
        "0: "
        "HCCL picks them (60000)",
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
                               const machine_facts& machine, accelerator devices) {
  const auto number = machine.environment.find("NODE_NUM");
  const bool finds_nodes = said.said.count("--nnodes") == 0 && !torchrun.rendezvous.standalone &&
                           number != machine.environment.end() && !number->second.empty();
  if (finds_nodes)
    torchrun.nodes = number->second;
  if (said.said.count("--nproc-per-node") == 0 &&
      visible_devices(devices, machine.all_devices(), machine.environment) > 0)
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

result<void> derive_accelerator(launcher_options& o, const dlrover_arguments& w,
                                const std::string& processes, const machine_facts& machine) {
  const std::string ascend = facts_about(accelerator::ascend).word;
  const bool counts_npus = processes == "npu";
  if (counts_npus && w.accelerator.value_or(ascend) != ascend)
    return failure(errc::invalid, fmt::format("--nproc-per-node npu: with --accelerator {} there "
                                              "are none; say gpu, or --accelerator {}",
                                              *w.accelerator, ascend));
  const bool any_npu = machine.all_devices().count(accelerator::ascend) != 0 &&
                       machine.all_devices().at(accelerator::ascend) > 0;
  const auto said = counts_npus && any_npu ? std::optional(ascend) : w.accelerator;
  const auto found = find_accelerator(said, machine.all_devices());
  if (!found)
    return tl::make_unexpected(found.error());
  o.devices = *found;
  o.devices_said = said.has_value();
  const auto port = hccl_port_wanted(o.devices, w.training_port, machine.environment);
  if (!port)
    return tl::make_unexpected(port.error());
  o.hccl_port = *port;
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
  if (o.devices != accelerator::nvidia) {
    o.remarks.push_back(
        fmt::format("--numa-affinity: the places of NVIDIA GPUs only are known, not "
                    "of {}; no worker is bound",
                    facts_about(o.devices).word));
    return {};
  }
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
  o.auto_tuning = w.auto_tuning;
  return derive_affinity(o, w, machine);
}

} // namespace troupe::launch
