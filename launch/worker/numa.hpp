#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/result.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

/// `--numa-binding`: which CPUs each worker may use, by torchrun's rules (torch.numa.binding): the
/// worker with local rank n belongs to the n-th GPU.
namespace troupe::launch {

using cpu_set = std::set<unsigned>;

/// What of this machine the rules look at.
struct numa_topology {
  /// The NUMA node of each GPU that workers see, in their order.
  std::vector<unsigned> gpus;
  /// All CPUs of each NUMA node.
  std::map<unsigned, cpu_set> nodes;
  /// That this process may use.
  cpu_set allowed;
  /// By CPU: the number of its socket, the first CPU of its core, and the first of those it shares
  /// its largest cache with.
  std::map<unsigned, unsigned> socket, core, cache;
};

/// Reads /sys and the NVIDIA driver's /proc below `root`. The order of GPUs is that of their PCI
/// addresses, narrowed by CUDA_VISIBLE_DEVICES.
numa_topology read_numa_topology(const std::string& root, const machine_facts& machine);

/// The CPUs of each local rank, as numactl takes them ("0-3,8"). Pure.
result<std::vector<std::string>> cpus_near_gpus(numa_binding how, const numa_topology& t,
                                                std::uint32_t processes);

/// The words by which numactl binds the memory of each local rank, near its GPU; none: "".
std::vector<std::string> memory_near_gpus(memory_binding how, const numa_topology& t,
                                          std::uint32_t processes);

/// "0-3,8" ↔ {0, 1, 2, 3, 8}, as /sys writes it.
cpu_set parse_cpu_list(const std::string& text);
std::string cpu_list(const cpu_set& cpus);

} // namespace troupe::launch
