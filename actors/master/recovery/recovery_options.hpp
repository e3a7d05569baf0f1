#pragma once

#include "actors/limits.hpp"
#include "actors/master/recovery/exit_classes.hpp"
#include "actors/master/recovery/growth.hpp"
#include "actors/master/recovery/planned_end.hpp"
#include "actors/master/recovery/start_pause.hpp"
#include "actors/master/recovery/topology_order.hpp"
#include "actors/master/recovery/world_sizes.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// How large a world is, and how long nodes are waited for.
struct rendezvous_options : world_sizes {
  /// A job of one node may become larger: others reach its master, and its node has bulk links.
  bool may_have_others = true;
  /// The first world, with MIN nodes here and not yet MAX: how long others are waited for. Nothing:
  /// until no node has come for `settle`, but no longer than `settle_most`.
  std::optional<duration> last_call;
  duration settle = limits::settle;
  duration settle_most = limits::settle_most;
  growth_options growth;
  /// How many nodes may have to be waited for after the first world, in the life of the job: those
  /// without which fewer than MIN are left. Nothing: as many as it takes.
  std::optional<std::uint32_t> relaunches_max;
  duration join_timeout = limits::join_timeout;
  /// How long a member may take from Prepare to Prepared, and from Stop to Stopped, beyond the time
  /// that its workers may take to end.
  duration prepare_slack = limits::prepare_slack;
  /// That time for a node that does not say it.
  duration stop_within = limits::stop_workers_within;
  /// After a restart of the master: how long the members of the recalled generation may take to
  /// come back.
  duration recall_within = limits::recall_within;
  /// The same when the job is over and only the verdict is left to be told.
  duration recall_concluded_within = limits::return_to_sleeper_within;
  topology_options topology;
  /// The workers are asked to save and end before a generation is stopped by a plan; nothing: they
  /// are not.
  std::optional<planned_end_options> planned_end;
};

/// What a failure costs.
struct recovery_options {
  /// How many failures of its workers each node may have in the life of the job (--max-restarts).
  /// Nothing: the most that a node says it was told. A stand-alone master often knows no more than
  /// where to listen, and users give this option to the command that trains.
  std::optional<std::uint32_t> max_restarts = 0;
  /// How many restarts the nodes may cost in all (--job-restarts). Nothing: as many as it takes.
  std::optional<std::uint32_t> job_restarts;
  /// The job ends, with an exit code of its own, when so many generations in a row have failed
  /// without progress. Nothing: progress is not asked for.
  std::optional<std::uint32_t> without_progress_max;
  /// A generation has made progress when it ran for this long before its first failure.
  duration progress_after = limits::progress_after;
  /// How the next start waits after failures at the start.
  start_pause_options start_pause;
  /// How long a node may be silent before it is lost.
  /// A loss that is noticed so much later than a failure may still be its cause.
  duration lease = limits::lease;
  hardware_signs hardware;
  /// The cluster gives another machine for a node that leaves, as often as its own budget allows.
  bool cluster_replaces = false;
  /// No node takes part before it was checked (--network-check).
  bool checks_nodes = false;
  /// The node whose launcher runs the master; empty: the master stands alone.
  node_name beside = {};
  /// How long a whole check may take.
  duration check_within = limits::check_steps_max * limits::check_probe_within;
};

} // namespace troupe::actors
