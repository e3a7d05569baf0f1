#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// When a training process counts as standing still, and how often that is asked. The defaults name
/// a hang within two seconds where steps are well under half a second, and otherwise within three
/// of the longest usual ones.
struct watch_policy {
  /// The user's: replaces everything that is learnt, also for a process that reports nothing.
  std::optional<duration> fixed_limit;
  /// No process is suspected before. Longer than a garbage collection or a hiccup of the network.
  duration floor = 1'200ms;
  /// Times the p99 of its steps, from their counts since the warm-up.
  double steps_factor = 1.8;
  /// Times the longest standstill that it has lately gone on from.
  double survived_factor = 1.5;
  /// Times the p99 of a phase that may last for many steps' time.
  double phase_factor = 3.0;
  /// A process that is stopped makes no step, whichever it is in. So long it may be so: a tool that
  /// takes its picture needs less.
  duration stopped_limit = 600ms;
  /// The first steps compile, connect and fill caches.
  std::uint64_t warm_up_steps = 5;
  /// The same where steps would be seen and none was made: these are collectives or batches that
  /// stand for steps, and may all be of the first.
  std::uint64_t warm_up_without_steps = 16;
  duration warm_up_limit = 10min;
  duration checkpoint_limit = 5min;
  duration evaluation_limit = 2min;
  duration user_phase_limit = 1min;
  /// What was learnt is worth no more than this.
  duration learnt_most = 30min;

  /// Three looks tell a process that moves from one that stands.
  std::uint32_t looks = 3;
  duration between_looks = 200ms;
  /// An answer to a look that takes longer is not waited for.
  duration look_within = 1'500ms;
  /// A process that stays where it is is looked at again after half as long again, at least and at
  /// most:
  duration look_again_first = 1s;
  duration look_again_most = 30s;
  /// Of a process that reports nothing only this often, since only a stop can be seen.
  duration unfed_look_every = 10s;

  /// How often the pages are read when nothing is near its limit, and at least between two reads.
  duration read_every = 500ms;
  duration read_at_most_every = 100ms;
  /// How often a node reports: this, or as much rarer as keeps the master at `reports_per_second`.
  duration report_every = 500ms;
  double reports_per_second = 80;
  /// A rank that is so much slower than it was is reported at once, a few times.
  double slower_by = 1.4;
  std::uint32_t early_reports = 6;

  /// A wake-up that is so late means that this machine, or this process, did not run: that time
  /// does not count. After a longer pause all limits begin anew, since caches and links do as well.
  duration late_by = 250ms;
  duration anew_after = 1s;
};

} // namespace troupe::actors
