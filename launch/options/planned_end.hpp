#pragma once

#include "actors/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What becomes of workers when the world is to change by a plan: newcomers, or a node that leaves.
namespace troupe::launch {

struct planned_end_settings {
  /// Workers are asked to save and end (`ucp`); else they are ended at once (`base`).
  bool asks = false;
  int signal = SIGUSR1;
  duration begin_within = limits::planned_end_begin_within;
  duration within = limits::planned_end_within;
  /// Removed before workers start; empty: none. Nothing: one in the run's directory.
  std::optional<std::string> stop_file = std::string();
  /// Where universal checkpoints are converted; empty: on the CPU.
  std::string ucp_device;
};

/// What was typed, before it means anything.
struct planned_end_arguments {
  std::optional<std::string> mode, stop_file, begin_within, within;
  std::string signal = "SIGUSR1", ucp_device = "cpu";
};

/// DLRover's variables: the option that each of them stands for, and its name.
std::vector<std::pair<std::string, std::string>> planned_end_variables();

/// An option goes before DLRover's variables for the same.
result<planned_end_settings>
derive_planned_end(const planned_end_arguments& w,
                   const std::map<std::string, std::string>& environment);

} // namespace troupe::launch
