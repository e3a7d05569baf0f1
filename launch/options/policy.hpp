#pragma once

#include "actors/limits.hpp"
#include "launch/options/planned_end.hpp"
#include "launch/options/topology.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How large a job's worlds are, and what its failures may cost, beyond torchrun's words. The
/// master decides; any node may be told.
namespace troupe::launch {

struct job_policy {
  /// A world has a multiple of so many nodes.
  std::uint32_t node_unit = 1;
  /// A DeepSpeed config with an "elasticity" section; empty: none.
  std::string elasticity_config;
  /// Of that file, where a node of the job has sent it; empty: the file is read.
  std::string elasticity_content;
  bool elasticity_capped = true;
  /// In all, beside the budget of each node.
  std::optional<std::uint32_t> job_restarts;
  std::optional<std::uint32_t> node_relaunches;
  std::optional<std::uint32_t> no_progress_limit;
  duration progress_after = limits::progress_after;
  /// Nothing: the known ones.
  std::optional<std::vector<std::int32_t>> hardware_exit_codes;
  std::optional<std::vector<std::string>> hardware_words;
  /// Of a node: what its workers have in memory is written out whenever they fail or are stopped.
  bool save_at_breakpoint = false;
  /// A larger world that does less than a smaller one did is undone.
  bool undo_worse_scaling = false;
  /// MindCluster's words, which choose nothing yet; empty: not given.
  std::string recover_strategy;
  topology_settings topology;
  planned_end_settings planned_end;
};

/// What was typed, before it means anything.
struct policy_arguments {
  std::int64_t node_unit = 1;
  std::string recover_strategy, elasticity_config, elasticity_variant = "capped";
  std::optional<std::int64_t> job_restarts, node_relaunches, no_progress_limit;
  bool save_at_breakpoint = false, undo_worse_scaling = false;
  double progress_after = std::chrono::duration<double>(limits::progress_after).count();
  std::optional<std::string> hardware_exit_codes, hardware_words;
  topology_arguments topology;
  planned_end_arguments planned_end;
};

result<job_policy> derive_policy(const policy_arguments& w,
                                 const std::pair<std::uint32_t, std::uint32_t>& nodes,
                                 const std::map<std::string, std::string>& environment);

} // namespace troupe::launch
