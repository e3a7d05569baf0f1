#pragma once

#include "actors/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Where nodes hang in the network, as the master is told it. docs/topology.md has the formats.
namespace troupe::launch {

struct topology_settings {
  /// Empty: none; nodes may say it themselves (--switches).
  std::string file;
  std::vector<std::string> label_keys;
  std::uint32_t worse_by = 1;
  duration wait = limits::topology_wait;
  /// Of `file`, as a node of the job has sent it: for a machine that does not have the file.
  std::string content;
};

/// What was typed, before it means anything.
struct topology_arguments {
  std::string file;
  std::optional<std::string> label_keys;
  std::int64_t worse_by = 1;
  double wait = std::chrono::duration<double>(limits::topology_wait).count();
};

result<topology_settings> derive_topology(const topology_arguments& w);

/// "pod-0/rack-7", the top of the network first.
result<std::vector<std::string>> parse_switches(const std::string& text);

/// The name and the address of the machine below a pod, by the variables in which pods are told
/// them: NODE_NAME, NODE_IP (DLRover's pods and this operator's), MA_CURRENT_HOST_IP (ModelArts).
std::vector<std::string> machine_names(const std::map<std::string, std::string>& environment);

/// What --print-ranks shows: the ranks of a file's nodes, without a run.
struct ranks_request {
  topology_settings from;
  /// The first of the file; nothing: all.
  std::optional<std::uint32_t> nodes;
  std::uint32_t unit = 1;
  bool json = false;
};

} // namespace troupe::launch
