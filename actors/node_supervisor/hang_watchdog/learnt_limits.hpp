#pragma once

#include "actors/node_supervisor/hang_watchdog/watch_policy.hpp"
#include "diag/progress/page_view.hpp"
#include "runtime/base/time.hpp"

#include <array>
#include <cstdint>

namespace troupe::actors {

/// How long one training process may stand still, as it has shown itself.
///
/// One number for all jobs is wrong for most: ten seconds are an age for steps of 50 ms, and
/// nothing for an evaluation. So each process is measured by its own steps and phases, without its
/// warm-up, and by what it has gone on from before.
class learnt_limits {
 public:
  /// Called with each reading of the page: remembers what the warm-up added to the counts.
  void read(const watch_policy& policy, const diag::page_view& page);
  /// It stood for so long in this phase, and went on by itself.
  void survived(const diag::page_view& at, duration stood);
  duration limit(const watch_policy& policy, const diag::page_view& page) const;
  bool is_warming_up(const watch_policy& policy, const diag::page_view& page) const;

  /// Of its steps since the warm-up; 0: too few.
  duration step_median(const diag::page_view& page) const;
  duration step_p99(const diag::page_view& page) const;

 private:
  struct standstill {
    duration longest{};
    std::uint64_t at_step = 0;
  };
  diag::duration_counts since_warm_up(const diag::page_view& page) const;
  static duration faded(const standstill& s, std::uint64_t steps);

  /// What the warm-up left in the histogram of steps.
  diag::duration_counts warm_up_;
  std::uint64_t last_total_ = 0;
  bool warm_ = false;
  /// By phase: a wait in one says nothing about the others.
  std::array<standstill, diag::phases> survived_;
};

} // namespace troupe::actors
