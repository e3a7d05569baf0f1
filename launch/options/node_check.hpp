#pragma once

#include "actors/limits.hpp"
#include "launch/options/box_pairs.hpp"
#include "probe/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Whether nodes are checked before they may take part, and against which bounds. The master
/// decides, so it is the one that must be told.
namespace troupe::launch {

struct node_check_options {
  bool wanted = false;
  /// Bandwidths among all nodes are measured after the check.
  bool measures_bandwidth = false;
  bool excludes_stragglers = false;
  double straggler_factor = 2;
  duration within = limits::check_probe_within; ///< each probe
  /// Pairs of devices of which the switch between them is checked; none: it is not.
  std::vector<box_pair> box_pairs;
  std::uint64_t min_bandwidth = limits::box_bandwidth_min; ///< MB/s
  std::uint32_t min_channels = limits::box_channels_min;
};

/// What was typed.
struct node_check_arguments {
  bool network_check = false, comm_perf_test = false, switchbox_check = false,
       exclude_straggler = false;
  std::string precheck = "0", box_pairs = box_pairs_by_default;
  std::int64_t min_bandwidth = limits::box_bandwidth_min, min_channels = limits::box_channels_min;
  double straggler_factor = 2;
  double timeout = std::chrono::duration<double>(limits::check_probe_within).count();
};

result<node_check_options> derive_node_check(const node_check_arguments& w);

} // namespace troupe::launch
