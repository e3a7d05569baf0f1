#include "launch/worker/worker_environment.hpp"

#include "launch/options/macros.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch {

worker_contract contract_of(const launcher_options& o,
                            const std::map<std::string, std::string>& environment,
                            const std::string& host, const std::string& run_directory) {
  worker_contract c;
  c.job = o.rdzv_id;
  c.max_restarts = o.max_restarts;
  c.module = o.module;
  c.no_python = o.no_python;
  c.run_path = o.run_path;
  c.python = o.python.program;
  c.virtual_local_rank = o.virtual_local_rank;
  c.visible_variable = visible_variable(o.devices, environment);
  c.local_rank_argument = o.local_rank_argument;
  c.signals = o.signals.words;
  c.omp_threads = o.omp_threads;
  c.rank_files = o.rank_files;
  if (const auto& said = o.policy.planned_end.stop_file)
    c.stops.own = *said;
  else
    c.stops.usual = usual_stop_file;
  c.ucp_device = o.policy.planned_end.ucp_device;
  c.tells_rank_after_topology = !o.rank_files.empty() || !o.policy.topology.file.empty();
  c.output = {o.streams, o.role, host, run_directory};
  c.command = o.command;
  c.environment = environment;
  // The launcher needs the job's token to reach other nodes; training does not.
  c.environment.erase(token_variable);
  c.environment.erase(token_file_variable);
  return c;
}

namespace {

/// What `python -u` is given to run a script as --run-path says.
std::vector<std::string> run_path_arguments() {
  return {"-c",
          "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"};
}

/// What stands before the user's own words.
std::vector<std::string> interpreter(const worker_contract& c) {
  if (c.no_python && !c.run_path)
    return {};
  std::vector<std::string> argv{c.python, "-u"};
  if (c.run_path)
    for (auto& argument : run_path_arguments())
      argv.push_back(std::move(argument));
  else if (c.module)
    argv.emplace_back("-m");
  return argv;
}

std::vector<std::string> command_line(const worker_contract& c, const actors::assignment& a) {
  auto argv = interpreter(c);
  const std::map<std::string, std::string> values{{"local_rank", std::to_string(a.local)}};
  auto command = c.command;
  if (c.local_rank_argument && !command.empty())
    command.insert(command.begin() + 1, "--local-rank=${local_rank}");
  for (const auto& word : command)
    // torchrun takes the name of a program as it is.
    argv.push_back(argv.empty() ? word : substituted(word, values));
  if (a.local < c.memory.size())
    argv.insert(argv.begin(), c.memory[a.local]);
  if (a.local < c.cpus.size())
    argv.insert(argv.begin(), {"numactl", "--physcpubind=" + c.cpus[a.local]});
  return argv;
}

/// The devices that were selected for this launcher; nothing if all are.
std::optional<std::vector<std::string>> selected_devices(const worker_contract& c) {
  const auto visible = c.environment.find(c.visible_variable);
  if (visible == c.environment.end())
    return std::nullopt;
  return split(visible->second, ',');
}

/// The interface in a link-local address is the one of the machine that said it.
std::string as_reached_from_here(const std::string& address, const std::string& zone) {
  const auto theirs = address.find('%');
  return theirs == std::string::npos || zone.empty() ? address
                                                     : address.substr(0, theirs + 1) + zone;
}

/// LOCAL_RANK, and with --virtual-local-rank the one device that is then number 0.
void place_locally(std::map<std::string, std::string>& env, const worker_contract& c,
                   const actors::assignment& a) {
  env["LOCAL_RANK"] = std::to_string(c.virtual_local_rank ? 0 : a.local);
  if (!c.virtual_local_rank)
    return;
  const auto selected = selected_devices(c);
  env[c.visible_variable] = selected && a.local < selected->size() ? stripped((*selected)[a.local])
                                                                   : std::to_string(a.local);
}

} // namespace

std::string zone_towards(const std::string& own_address, const std::string& master_host) {
  for (const auto& address : {own_address, master_host})
    if (const auto zone = address.find('%'); zone != std::string::npos)
      return address.substr(zone + 1);
  return {};
}

std::optional<std::string> contract_validation_error(const worker_contract& c,
                                                     std::uint32_t processes) {
  const auto selected = selected_devices(c);
  if (c.virtual_local_rank && selected && selected->size() < processes)
    return fmt::format("--virtual-local-rank: {}={} names fewer devices than there are workers "
                       "({})",
                       c.visible_variable, c.environment.at(c.visible_variable), processes);
  return std::nullopt;
}

namespace {

/// A state that all ranks have alike is saved by the first of each node; the others read it there.
void give_memory(const worker_contract& c, const actors::assignment& a, ports::process_spec& spec,
                 std::map<std::string, std::string>& env) {
  constexpr auto own = "TROUPE_CHECKPOINT_MEMORY",
                 of_the_first = "TROUPE_CHECKPOINT_MEMORY_OF_NODE",
                 of_others = "TROUPE_CHECKPOINT_MEMORY_OF_OTHERS",
                 given_at = "TROUPE_COPIES_ADDRESS";
  for (const auto* another_launchers : {own, of_the_first, of_others, given_at})
    env.erase(another_launchers);
  const auto local = a.local;
  if (local >= c.checkpoint_memory.size())
    return;
  spec.descriptors = c.checkpoint_memory[local];
  env[own] = fmt::format("{}", fmt::join(spec.descriptors, ","));
  const auto show = [&](const char* variable, const std::vector<int>& memory) {
    env[variable] = fmt::format("{}", fmt::join(memory, ","));
    // The last two, the node's ledger and the wake-up event, are those of all ranks.
    spec.descriptors.insert(spec.descriptors.end(), memory.begin(), memory.end() - 2);
  };
  if (local != 0)
    show(of_the_first, c.checkpoint_memory.front());
  if (c.copies_port == 0 || local >= c.memory_for_others.size())
    return;
  show(of_others, c.memory_for_others[local]);
  env[given_at] = ports::to_string(ports::endpoint{a.address, c.copies_port});
}

/// How a training process says how far it is, and is asked.
void give_progress(const worker_contract& c, const actors::assignment& a, ports::process_spec& spec,
                   std::map<std::string, std::string>& env) {
  constexpr auto page = "TROUPE_PROGRESS_FD", channel = "TROUPE_CHANNEL", hooks = "TROUPE_HOOKS",
                 path = "PYTHONPATH", keeper = "TROUPE_KEEPER";
  for (const auto* another_launchers : {page, channel, keeper})
    env.erase(another_launchers);
  if (a.local < c.progress_memory.size()) {
    env[page] = std::to_string(c.progress_memory[a.local]);
    spec.descriptors.push_back(c.progress_memory[a.local]);
  }
  if (!c.channel.empty())
    env[channel] = c.channel;
  if (c.keeper != 0)
    env[keeper] = std::to_string(c.keeper);
  // "0" and "debug" are the user's.
  const auto said = env.find(hooks);
  const bool debugged = said != env.end() && said->second == "debug";
  if (c.hooks.empty() || (said != env.end() && said->second == "0"))
    return;
  // It takes itself out of the path again before the script begins.
  const auto others = env.find(path);
  env[path] =
      others == env.end() || others->second.empty() ? c.hooks : c.hooks + ":" + others->second;
  if (!debugged)
    env[hooks] = "1";
}

void give_trace(const worker_contract& c, std::map<std::string, std::string>& env) {
  if (c.trace_library.empty())
    return;
  auto& preload = env["LD_PRELOAD"];
  preload = preload.empty() ? c.trace_library : c.trace_library + ":" + preload;
  env.emplace("TROUPE_TRACE_DIR", c.trace_directory);
  env.emplace("TROUPE_JOB", c.job);
}

} // namespace

ports::process_spec worker_spec(const worker_contract& c, const actors::assignment& a) {
  const auto files = files_of(c.output, a);
  auto env = c.environment;
  const auto number = [](auto n) { return std::to_string(n); };
  env["RANK"] = number(a.rank);
  place_locally(env, c, a);
  env["WORLD_SIZE"] = number(a.world_size);
  env["LOCAL_WORLD_SIZE"] = number(a.local_world_size);
  env["GROUP_RANK"] = number(a.group_rank);
  env["GROUP_WORLD_SIZE"] = number(a.group_world_size);
  env["ROLE_NAME"] = c.output.role;
  env["ROLE_RANK"] = number(a.role_rank);
  env["ROLE_WORLD_SIZE"] = number(a.role_world_size);
  env["MASTER_ADDR"] = as_reached_from_here(a.store_address, c.zone);
  env["MASTER_PORT"] = number(a.store_port);
  env["TORCHELASTIC_RESTART_COUNT"] = number(a.restart_count);
  constexpr auto failed_at = "TROUPE_FAILED_AT"; // seconds, as CLOCK_MONOTONIC has them
  env.erase(failed_at);
  if (a.failed_at)
    env[failed_at] = fmt::format(
        "{:.3f}", std::chrono::duration<double>(a.failed_at->time_since_epoch()).count());
  env["TORCHELASTIC_MAX_RESTARTS"] = number(c.max_restarts);
  env["TORCHELASTIC_RUN_ID"] = c.job;
  // Otherwise rank 0's worker hosts the store.
  env["TORCHELASTIC_USE_AGENT_STORE"] = a.store_hosted ? "True" : "False";
  env["TORCHELASTIC_ERROR_FILE"] = files.error_file;
  env["TORCHELASTIC_SIGNALS_TO_HANDLE"] = c.signals;
  env.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (c.omp_threads)
    env.emplace("OMP_NUM_THREADS", number(*c.omp_threads));
  env["TROUPE_GENERATION"] = number(a.which.value);
  constexpr auto stop_file = "TROUPE_STOP_FILE";
  env.erase(stop_file); // of an outer job
  if (!c.stops.own.empty())
    env[stop_file] = c.stops.own;
  if (c.hccl_port != 0)
    env[hccl_port_variable] = number(c.hccl_port);
  if (!c.tuning_file.empty())
    env[tuning_file_variable] = c.tuning_file;
  if (!c.ucp_device.empty())
    env["TROUPE_UCP_DEVICE_TYPE"] = c.ucp_device;
  if (c.tells_rank_after_topology) {
    env["RANK_AFTER_ACC"] = number(a.group_rank);
    env["MASTER_INDEX"] = number(a.master_index);
  }

  ports::process_spec spec;
  give_memory(c, a, spec, env);
  give_progress(c, a, spec, env);
  give_trace(c, env);
  spec.argv = command_line(c, a);
  for (const auto& [name, value] : env)
    spec.environment.push_back(fmt::format("{}={}", name, value));
  spec.stdout_file = files.stdout_file;
  spec.stderr_file = files.stderr_file;
  return spec;
}

} // namespace troupe::launch
