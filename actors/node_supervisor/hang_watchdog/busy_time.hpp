#pragma once

#include "diag/progress/page_view.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// How long one training process works in a step: the step without the time that it was in a
/// collective, where the slowest rank makes all others wait. Only this tells which rank is slow,
/// since steps take equally long for all.
class busy_time {
 public:
  struct measured {
    duration each{}; ///< mean of the steps
    std::uint64_t steps = 0;
    duration within{}; ///< that they took
  };

  /// From one report to the next. Nothing if no step was made in between, if a single one of them
  /// took most of the time, or if the page does not say when collectives end.
  std::optional<measured> measure(const diag::page_view& page);
  /// The same, but the next one is measured from where this one is.
  std::optional<measured> peek(const diag::page_view& page) const;
  /// In its past: a slow mean, which does not follow a time in which it is slow.
  /// 0: too little is known.
  duration usual() const;
  void forget() { from_.reset(); }

 private:
  struct mark {
    std::uint64_t steps = 0;
    std::uint64_t step_ns = 0;
    std::uint64_t waited_ns = 0;
    diag::duration_counts durations; ///< of its steps
  };
  static std::optional<mark> mark_of(const diag::page_view& page);

  std::optional<mark> from_;
  duration usual_{};
  std::uint32_t learnt_ = 0;
};

} // namespace troupe::actors
