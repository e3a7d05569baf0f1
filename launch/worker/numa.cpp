#include "launch/worker/numa.hpp"

#include <fmt/format.h>

#include <algorithm>

/// The rules; numa_topology.cpp reads the machine.
namespace troupe::launch {

std::string cpu_list(const cpu_set& cpus) {
  std::string text;
  for (auto at = cpus.begin(); at != cpus.end();) {
    const auto first = *at;
    auto last = first;
    while (++at != cpus.end() && *at == last + 1)
      last = *at;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last != first)
      text += fmt::format("-{}", last);
  }
  return text;
}

namespace {

cpu_set allowed_on(const numa_topology& t, unsigned node) {
  cpu_set cpus;
  const auto all = t.nodes.find(node);
  if (all != t.nodes.end())
    std::set_intersection(all->second.begin(), all->second.end(), t.allowed.begin(),
                          t.allowed.end(), std::inserter(cpus, cpus.end()));
  return cpus;
}

cpu_set of_socket(const numa_topology& t, unsigned node) {
  const auto socket_of = [&](const cpu_set& cpus) -> std::optional<unsigned> {
    const auto known = cpus.empty() ? t.socket.end() : t.socket.find(*cpus.begin());
    return known == t.socket.end() ? std::nullopt : std::optional(known->second);
  };
  const auto mine = socket_of(allowed_on(t, node));
  cpu_set cpus;
  for (const auto& [other, all] : t.nodes)
    if (const auto here = allowed_on(t, other); mine && socket_of(here) == mine)
      cpus.insert(here.begin(), here.end());
  return cpus;
}

/// The node's CPUs, by a property they share; a CPU of which nothing is known is alone.
std::map<unsigned, cpu_set> grouped(const cpu_set& cpus, const std::map<unsigned, unsigned>& by) {
  std::map<unsigned, cpu_set> groups;
  for (const auto cpu : cpus) {
    const auto known = by.find(cpu);
    groups[known == by.end() ? cpu : known->second].insert(cpu);
  }
  return groups;
}

/// How many GPUs are at the node of this one, and the how-manieth of them it is.
struct neighbours {
  std::size_t all = 0, before = 0;
};

neighbours of_gpu(const numa_topology& t, std::size_t gpu) {
  neighbours n;
  for (std::size_t i = 0; i < t.gpus.size(); ++i)
    if (t.gpus[i] == t.gpus[gpu]) {
      ++n.all;
      n.before += i < gpu;
    }
  return n;
}

/// Whole cores, evenly; the first GPUs get one more where they do not come out even.
cpu_set share_of_cores(const numa_topology& t, std::size_t gpu) {
  const auto cores = grouped(allowed_on(t, t.gpus[gpu]), t.core);
  const auto [all, before] = of_gpu(t, gpu);
  const auto each = cores.size() / all, left = cores.size() % all;
  if (each == 0)
    return {};
  const auto first = before * each + std::min(before, left);
  const auto count = each + (before < left ? 1 : 0);
  cpu_set cpus;
  auto core = std::next(cores.begin(), static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < count; ++i, ++core)
    cpus.insert(core->second.begin(), core->second.end());
  return cpus;
}

/// The caches with most of the CPUs first; more GPUs than caches take turns.
cpu_set of_cache(const numa_topology& t, std::size_t gpu) {
  std::vector<cpu_set> caches;
  for (auto& [first, cpus] : grouped(allowed_on(t, t.gpus[gpu]), t.cache))
    caches.push_back(cpus);
  if (caches.empty())
    return {};
  std::stable_sort(caches.begin(), caches.end(),
                   [](const cpu_set& a, const cpu_set& b) { return a.size() > b.size(); });
  return caches[of_gpu(t, gpu).before % caches.size()];
}

cpu_set cpus_of(numa_binding how, const numa_topology& t, std::size_t gpu) {
  switch (how) {
  case numa_binding::socket:
    return of_socket(t, t.gpus[gpu]);
  case numa_binding::exclusive:
    return share_of_cores(t, gpu);
  case numa_binding::core_complex:
    return of_cache(t, gpu);
  case numa_binding::node:
  case numa_binding::none:
    break;
  }
  return allowed_on(t, t.gpus[gpu]);
}

} // namespace

result<std::vector<std::string>> cpus_near_gpus(numa_binding how, const numa_topology& t,
                                                std::uint32_t processes) {
  std::vector<std::string> lists;
  if (how == numa_binding::none)
    return lists;
  if (t.gpus.size() < processes)
    return failure(errc::invalid,
                   fmt::format("--numa-binding: {} worker(s), but this machine shows {} NVIDIA "
                               "GPU(s) they could be near to",
                               processes, t.gpus.size()));
  for (std::size_t gpu = 0; gpu < processes; ++gpu) {
    const auto cpus = cpus_of(how, t, gpu);
    if (cpus.empty())
      return failure(errc::invalid,
                     fmt::format("--numa-binding: no CPU that this process may use is left for GPU "
                                 "{} (NUMA node {})",
                                 gpu, t.gpus[gpu]));
    lists.push_back(cpu_list(cpus));
  }
  return lists;
}

std::vector<std::string> memory_near_gpus(memory_binding how, const numa_topology& t,
                                          std::uint32_t processes) {
  std::vector<std::string> words;
  if (how == memory_binding::none)
    return words;
  const auto* option = how == memory_binding::only ? "--membind" : "--preferred";
  for (std::size_t gpu = 0; gpu < processes && gpu < t.gpus.size(); ++gpu)
    words.push_back(fmt::format("{}={}", option, t.gpus[gpu]));
  return words;
}

} // namespace troupe::launch
