#include "launch/wiring/command_check.hpp"

#include "launch/options/macros.hpp"
#include "launch/options/nearest.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/worker/numa.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace troupe::launch {

namespace {

/// ", did you mean 'train.py'?", of the files beside it.
std::string similar_script(const std::filesystem::path& missing) {
  std::vector<std::string> beside;
  std::error_code unreadable;
  const auto directory = missing.has_parent_path() ? missing.parent_path() : ".";
  for (const auto& file : std::filesystem::directory_iterator(directory, unreadable))
    if (file.path().extension() == missing.extension())
      beside.push_back(file.path().filename());
  const auto meant = nearest(missing.filename(), beside);
  return meant.empty()
             ? ""
             : fmt::format("; did you mean '{}'?", (missing.parent_path() / meant).string());
}

} // namespace

result<worker_contract> contract_on(const launcher_options& o, const machine_facts& machine) {
  auto contract = contract_of(o, machine.environment, host_name(), {});
  if (o.numa == numa_binding::none)
    return contract;
  const auto topology = read_numa_topology("/", machine);
  auto cpus = cpus_near_gpus(o.numa, topology, o.processes_per_node);
  if (!cpus)
    return tl::make_unexpected(cpus.error());
  contract.cpus = std::move(*cpus);
  contract.memory = memory_near_gpus(o.memory, topology, o.processes_per_node);
  return contract;
}

std::optional<std::string> command_validation_error(const launcher_options& o,
                                                    const worker_contract& contract) {
  const bool is_file = o.run_path || (!o.module && !o.no_python);
  const auto script = substituted(o.command.front(), {{"local_rank", "0"}});
  if (is_file && !std::filesystem::exists(script))
    return fmt::format("script '{}' does not exist{}", script, similar_script(script));
  if (auto why = contract_validation_error(contract, o.processes_per_node))
    return why;
  const auto plan = os::launch_plan::make(worker_spec(contract, {}));
  return plan ? std::nullopt : std::optional(plan.error().what);
}

} // namespace troupe::launch
