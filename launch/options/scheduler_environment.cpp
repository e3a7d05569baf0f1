#include "launch/options/scheduler_environment.hpp"

#include "launch/options/host_list.hpp"
#include "launch/options/values.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

namespace {

using variables = std::map<std::string, std::string>;

/// The value, unless it is empty.
std::optional<std::string> value(const variables& from, const char* name) {
  const auto found = from.find(name);
  if (found == from.end() || stripped(found->second).empty())
    return std::nullopt;
  return stripped(found->second);
}

tl::unexpected<error> wrong(const std::string& name, const std::string& why) {
  return failure(errc::invalid, fmt::format("{}: {}", name, why));
}

result<std::optional<std::uint64_t>> number(const variables& from, const char* name,
                                            std::uint64_t most) {
  const auto text = value(from, name);
  if (!text)
    return std::optional<std::uint64_t>{};
  const auto n = digits(*text);
  if (!n || *n > most)
    return wrong(name, fmt::format("'{}' is not a number from 0 to {}", *text, most));
  return n;
}

/// An address with its port in a second variable, or behind it.
result<scheduler_environment> from_address(const variables& all, const char* address,
                                           const char* port) {
  scheduler_environment s;
  s.named = true;
  s.from = address;
  const auto text = *value(all, address);
  if (const auto host = parse_host(text)) {
    s.master = ports::endpoint{*host, rendezvous_port};
  } else {
    const auto both = parse_endpoint(text, rendezvous_port);
    if (!both)
      return wrong(address, both.error().what);
    s.master = *both;
  }
  const auto given = number(all, port, 65'535);
  if (!given)
    return tl::make_unexpected(given.error());
  if (*given)
    s.master->port = static_cast<std::uint16_t>(**given);
  return s;
}

std::string first_label(const std::string& host) {
  return host.substr(0, host.find('.'));
}

/// This node's place in a list: by its whole name, or by the first part of it.
std::optional<std::uint32_t> place_of(const std::string& host,
                                      const std::vector<std::string>& hosts) {
  const auto same = [&host](const std::string& other) {
    return other == host || first_label(other) == first_label(host);
  };
  const auto found = std::find_if(hosts.begin(), hosts.end(), same);
  if (host.empty() || found == hosts.end() ||
      std::find_if(found + 1, hosts.end(), same) != hosts.end())
    return std::nullopt;
  return static_cast<std::uint32_t>(found - hosts.begin());
}

/// Volcano lists the hosts of each task; the master's come first.
result<scheduler_environment> from_volcano(const variables& all, const std::string& host) {
  scheduler_environment s;
  std::vector<std::string> hosts;
  for (const auto* name : {"VC_MASTER_HOSTS", "VC_WORKER_HOSTS"}) {
    const auto text = value(all, name);
    if (!text)
      continue;
    const auto more = parse_host_list(*text);
    if (!more)
      return wrong(name, more.error().what);
    if (s.from.empty())
      s.from = name;
    hosts.insert(hosts.end(), more->begin(), more->end());
  }
  if (hosts.size() > limits::nodes_max)
    return wrong(s.from, fmt::format("more than {} nodes", limits::nodes_max));
  s.master = ports::endpoint{hosts.front(), static_port};
  s.nodes = static_cast<std::uint32_t>(hosts.size());
  s.node_rank = place_of(host, hosts);
  return s;
}

/// Jobs that share a node must not meet at one port, and every node of a job must find the same.
std::uint16_t port_of_job(std::uint64_t job) {
  constexpr std::uint64_t first = 15'000, number_of = 10'000;
  return static_cast<std::uint16_t>(first + job % number_of);
}

/// How many tasks of a step Slurm has put on one node at most: "2(x3),1" says so of each.
std::uint64_t tasks_on_a_node(const std::string& text) {
  std::uint64_t most = 0;
  for (const auto& one : split(text, ','))
    most = std::max(most, digits(one.substr(0, one.find('('))).value_or(0));
  return most;
}

/// A launcher starts all workers of its node, so a second one there would be another node of the
/// same rank.
std::optional<error> too_many_tasks(const variables& all) {
  const auto why = [](const char* name, const std::string& text, const std::string& tasks) {
    return wrong(name, fmt::format("'{}': Slurm has started {} on this node, and one launcher "
                                   "starts all workers of a node: use srun --ntasks-per-node=1 "
                                   "and say how many workers with --nproc-per-node",
                                   text, tasks))
        .value();
  };
  constexpr auto tasks = "SLURM_STEP_TASKS_PER_NODE", own = "SLURM_LOCALID";
  const auto text = value(all, tasks).value_or("");
  if (const auto most = tasks_on_a_node(text); most > 1)
    return why(tasks, text, fmt::format("{} tasks", most));
  // Counted from 0 on each node; a batch script, which no srun has started, is task 0.
  const auto local = value(all, own).value_or("");
  if (digits(local).value_or(0) > 0)
    return why(own, local, "several tasks");
  return std::nullopt;
}

/// A step started by srun has a list of its own, and node ids that count within it.
result<scheduler_environment> from_slurm(const variables& all) {
  scheduler_environment s;
  if (auto wrong = too_many_tasks(all))
    return tl::make_unexpected(*wrong);
  s.from = value(all, "SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const auto hosts = parse_host_list(*value(all, s.from.c_str()));
  if (!hosts)
    return wrong(s.from, hosts.error().what);
  const auto node = number(all, "SLURM_NODEID", limits::nodes_max - 1);
  const auto nodes = number(all, "SLURM_NNODES", limits::nodes_max);
  const auto job = number(all, "SLURM_JOB_ID", ~std::uint64_t{0});
  for (const auto* each : {&node, &nodes, &job})
    if (!*each)
      return tl::make_unexpected(each->error());
  s.master = ports::endpoint{hosts->front(), *job ? port_of_job(**job) : static_port};
  s.nodes = static_cast<std::uint32_t>(hosts->size());
  if (*nodes && **nodes != hosts->size())
    return wrong("SLURM_NNODES",
                 fmt::format("{} nodes, but {} names {}", **nodes, s.from, hosts->size()));
  if (*node && **node >= hosts->size())
    return wrong("SLURM_NODEID",
                 fmt::format("{}, but {} names {} node(s)", **node, s.from, hosts->size()));
  if (*node)
    s.node_rank = static_cast<std::uint32_t>(**node);
  return s;
}

result<scheduler_environment> from_first_variable(const variables& environment,
                                                  const std::string& host) {
  const auto has = [&environment](const char* name) {
    return value(environment, name).has_value();
  };
  if (has("TROUPE_MASTER_ADDR"))
    return from_address(environment, "TROUPE_MASTER_ADDR", "TROUPE_MASTER_PORT");
  if (has("DLROVER_MASTER_ADDR"))
    return from_address(environment, "DLROVER_MASTER_ADDR", "DLROVER_MASTER_PORT");
  if (has("PET_MASTER_ADDR") || has("PET_RDZV_ENDPOINT"))
    return scheduler_environment{};
  if (has("VC_MASTER_HOSTS") || has("VC_WORKER_HOSTS"))
    return from_volcano(environment, host);
  if (has("SLURM_STEP_NODELIST") || has("SLURM_JOB_NODELIST"))
    return from_slurm(environment);
  return scheduler_environment{};
}

/// A value that is no index of this pod's is another program's variable.
void find_siblings(scheduler_environment& s, const variables& environment,
                   const std::string& host) {
  const auto text = value(environment, "JOB_COMPLETION_INDEX").value_or("");
  const auto index = digits(text).value_or(limits::nodes_max);
  const auto name = first_label(host), suffix = "-" + text;
  if (index >= limits::nodes_max || name.size() <= suffix.size() ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return;
  s.siblings = name.substr(0, name.size() - text.size());
  s.index = static_cast<std::uint32_t>(index);
}

} // namespace

std::optional<std::uint32_t> rank_among_siblings(const scheduler_environment& s,
                                                 const std::string& master_host) {
  return s.index && first_label(master_host) == s.siblings + "0" ? s.index : std::nullopt;
}

result<scheduler_environment> find_scheduler_environment(const variables& environment,
                                                         const std::string& host) {
  auto found = from_first_variable(environment, host);
  if (!found)
    return found;
  find_siblings(*found, environment, host);
  found->in_worker = value(environment, "TORCHELASTIC_RUN_ID").has_value();
  return found;
}

} // namespace troupe::launch
