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
///
/// Not every program makes steps that are seen: an inference loop, updates by hand, an optimizer
/// that is none of PyTorch's. Its collectives and batches stand for them, and the time from one
/// thing that its page notes to the next is what is usual.
class learnt_limits {
 public:
  /// Called with each reading of the page: remembers what the warm-up added to the counts.
  void read(const watch_policy& policy, const diag::page_view& page);
  /// It stood for so long in this phase, and went on by itself.
  void survived(const diag::page_view& at, duration stood);
  duration limit(const watch_policy& policy, const diag::page_view& page) const;
  bool is_warming_up(const watch_policy& policy, const diag::page_view& page) const;
  /// No step was seen, or none for many collectives.
  bool is_without_steps(const diag::page_view& page) const;

  /// Of its steps since the warm-up; 0: too few.
  duration step_median(const diag::page_view& page) const;
  duration step_p99(const diag::page_view& page) const;

 private:
  struct standstill {
    duration longest{};
    std::uint64_t at_step = 0;
  };
  /// A histogram of the page without what the warm-up left in it.
  struct since_warm_up {
    void read(const diag::duration_counts& now);
    void warm(const diag::duration_counts& now) { left_out = now; }
    diag::duration_counts of(const diag::duration_counts& now) const;

    diag::duration_counts left_out;
    std::uint64_t last_total = 0;
  };
  /// Steps, or what stands for them.
  std::uint64_t steps_of(const diag::page_view& page) const;
  duration usual_limit(const watch_policy& policy, const diag::page_view& page) const;
  static duration faded(const standstill& s, std::uint64_t steps);

  since_warm_up steps_, silences_;
  bool warm_ = false;
  /// As they were when the last step was made.
  std::uint64_t last_steps_ = 0, collectives_then_ = 0, batches_then_ = 0;
  /// By phase: a wait in one says nothing about the others.
  std::array<standstill, diag::phases> survived_;
};

} // namespace troupe::actors
