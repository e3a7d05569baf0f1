#pragma once

#include "runtime/base/time.hpp"

#include <array>
#include <cstddef>

namespace troupe::metrics {

/// What the time of a job goes to.
enum class spent : std::size_t {
  starting,   ///< until workers run for the first time
  training,   ///< they run
  recovering, ///< from a failure, or a change of the world, until workers make steps again
  standing,   ///< they run, and a rank keeps the others waiting
  concluded,  ///< the job is over; the master waits for its nodes
};
inline constexpr std::size_t ways_to_spend = 5;
const char* to_string(spent s);

/// Adds up what the time goes to. No sum ever falls, as a counter must not.
///
/// What an interval was lost to is often known only at its end. Then it is counted at once where it
/// belongs, and as much of the training that follows is not counted: after that the sums are the
/// time since the beginning again.
class time_account {
 public:
  explicit time_account(instant began) : since_(began) {}

  void become(instant now, spent next);
  spent now() const { return state_; }

  /// `lost` of the time that was counted as training was of another kind.
  void was_rather(instant now, spent kind, duration lost);

  duration in(instant now, spent kind) const;
  /// All time but `concluded`, as the clock has it: not the sum of the others while training that
  /// is counted elsewhere already has not been taken from it.
  duration all(instant now) const;
  /// Training in proportion to all but `concluded`; 0 before any time has passed.
  double goodput(instant now) const;

 private:
  void count(instant now);

  spent state_ = spent::starting;
  instant since_; ///< the time before it is counted
  std::array<duration, ways_to_spend> sums_{};
  duration owed_{}; ///< counted elsewhere already, to be taken from training
};

} // namespace troupe::metrics
