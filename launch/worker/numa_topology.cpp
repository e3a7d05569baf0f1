#include "launch/options/values.hpp"
#include "launch/worker/numa.hpp"
#include "runtime/os/contents_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <sched.h>

namespace troupe::launch {

namespace fs = std::filesystem;

cpu_set parse_cpu_list(const std::string& text) {
  constexpr unsigned most = 1u << 16;
  cpu_set cpus;
  for (const auto& word : split(stripped(text), ',')) {
    const auto dash = word.find('-');
    const auto first = digits(word.substr(0, dash));
    const auto last = dash == std::string::npos ? first : digits(word.substr(dash + 1));
    if (!first || !last || *last >= most)
      continue;
    for (auto cpu = *first; cpu <= *last; ++cpu)
      cpus.insert(static_cast<unsigned>(cpu));
  }
  return cpus;
}

namespace {

/// Directory entries, in order of their names; none if there is no such directory.
std::vector<fs::path> entries(const fs::path& directory) {
  std::error_code none;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory, none))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The number in "node12", if the name has that form.
std::optional<unsigned> number_behind(const std::string& word, const fs::path& path) {
  const auto name = path.filename().string();
  if (name.compare(0, word.size(), word) != 0)
    return std::nullopt;
  const auto n = digits(name.substr(word.size()));
  return n ? std::optional(static_cast<unsigned>(*n)) : std::nullopt;
}

std::optional<unsigned> first_of(const fs::path& list) {
  const auto cpus = parse_cpu_list(os::contents_of(list));
  return cpus.empty() ? std::nullopt : std::optional(*cpus.begin());
}

/// The first CPU of those that share the largest cache for data with this one.
std::optional<unsigned> largest_cache(const fs::path& cpu) {
  std::int64_t largest = -1;
  std::optional<unsigned> first;
  for (const auto& index : entries(cpu / "cache")) {
    const auto type = stripped(os::contents_of(index / "type"));
    const auto level = python_int(os::contents_of(index / "level"));
    if ((type != "Unified" && type != "Data") || !level || *level <= largest)
      continue;
    largest = *level;
    first = first_of(index / "shared_cpu_list");
  }
  return first;
}

struct gpu {
  std::string uuid;
  unsigned node = 0;
};

/// In order of their PCI addresses, which are the names of their directories.
std::vector<gpu> all_gpus(const fs::path& root) {
  std::vector<gpu> gpus;
  for (const auto& directory : entries(root / "proc/driver/nvidia/gpus")) {
    gpu g;
    const auto information = os::contents_of(directory / "information");
    const auto at = information.find("GPU-");
    if (at != std::string::npos)
      g.uuid = stripped(information.substr(at, information.find('\n', at) - at));
    const auto node = python_int(
        os::contents_of(root / "sys/bus/pci/devices" / directory.filename() / "numa_node"));
    // -1: a machine with one node only.
    g.node = static_cast<unsigned>(std::max<std::int64_t>(0, node.value_or(0)));
    gpus.push_back(std::move(g));
  }
  return gpus;
}

std::vector<unsigned> visible(const std::vector<gpu>& all, const machine_facts& machine) {
  std::vector<unsigned> nodes;
  const auto chosen = machine.environment.find("CUDA_VISIBLE_DEVICES");
  if (chosen == machine.environment.end()) {
    for (const auto& g : all)
      nodes.push_back(g.node);
    return nodes;
  }
  for (const auto& word : split(chosen->second, ',')) {
    const auto name = stripped(word);
    const auto number = digits(name);
    const auto found = std::find_if(all.begin(), all.end(), [&](const gpu& g) {
      return number ? &g - all.data() == static_cast<std::ptrdiff_t>(*number)
                    : !name.empty() && g.uuid.compare(0, name.size(), name) == 0;
    });
    if (found == all.end())
      break;
    nodes.push_back(found->node);
  }
  return nodes;
}

} // namespace

numa_topology read_numa_topology(const std::string& root, const machine_facts& machine) {
  numa_topology t;
  const fs::path top = root;
  t.gpus = visible(all_gpus(top), machine);
  for (const auto& node : entries(top / "sys/devices/system/node"))
    if (const auto number = number_behind("node", node))
      t.nodes[*number] = parse_cpu_list(os::contents_of(node / "cpulist"));
  for (const auto& cpu : entries(top / "sys/devices/system/cpu")) {
    const auto number = number_behind("cpu", cpu);
    if (!number)
      continue;
    if (const auto socket = python_int(os::contents_of(cpu / "topology/physical_package_id")))
      t.socket[*number] = static_cast<unsigned>(std::max<std::int64_t>(0, *socket));
    if (const auto core = first_of(cpu / "topology/thread_siblings_list"))
      t.core[*number] = *core;
    if (const auto cache = largest_cache(cpu))
      t.cache[*number] = *cache;
  }
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask))
        t.allowed.insert(cpu);
  return t;
}

} // namespace troupe::launch
