#pragma once

#include "actors/limits.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

struct start_pause_options {
  /// A generation that works for less before its first failure has failed at its start.
  duration within = limits::failed_at_start_within;
  /// Before the start that follows the second such failure in a row; then twice as long each time.
  duration first = limits::start_pause_first;
  duration most = limits::start_pause_most;
};

/// What failures at the start that follow each other say: how long the next start waits, and
/// whether they are one and the same failure.
///
/// A program that cannot start yet (a name server, a mount, a licence that is not there) fails
/// within milliseconds, and would use up all its restarts before anything could change. The first
/// failure is followed at once, as most causes are gone then; one that comes after a while of work
/// begins the count anew.
///
/// A program that can never start (a mistyped name) fails the same way on whatever node it shows
/// first, so that the budgets of N nodes would try it N times as often as that of one. Pure.
class start_pause {
 public:
  explicit start_pause(start_pause_options options) : options_(options) {}

  /// A failure that is counted, after so long a time of work. `how`: two of the same are the same
  /// failure; empty: it is none of the program's. Answers the pause that begins.
  duration failed(instant now, duration worked, const std::string& how, const node_name& node) {
    in_a_row_ = worked < options_.within ? in_a_row_ + 1 : 0;
    same_in_a_row_ = in_a_row_ == 0 || how.empty() ? 0 : how == how_ ? same_in_a_row_ + 1 : 1;
    how_ = how;
    take_node(node);
    const auto wait = pause();
    until_ = wait > duration{} ? std::optional(now + wait) : std::nullopt;
    return wait;
  }
  /// A generation that ended otherwise, after so long a time of work.
  void ended(duration worked) {
    if (worked >= options_.within)
      in_a_row_ = same_in_a_row_ = 0;
  }
  /// What an earlier planner had counted; its pause is over by the time that a master has begun.
  void recall(std::uint32_t in_a_row, std::uint32_t same_in_a_row, bool on_several, std::string how,
              const node_name& node) {
    in_a_row_ = in_a_row;
    same_in_a_row_ = same_in_a_row;
    on_several_ = on_several;
    how_ = std::move(how);
    node_ = node;
  }

  /// Until when no generation may start; asked with the time, so that it ends by itself.
  bool holds(instant now) {
    if (until_ && now >= *until_)
      until_.reset();
    return until_.has_value();
  }
  std::optional<instant> until() const { return until_; }
  std::uint32_t in_a_row() const { return in_a_row_; }
  /// The last so many failures came at the start, and were the same.
  std::uint32_t same_in_a_row() const { return same_in_a_row_; }
  /// Not all of those were on one node.
  bool is_on_several() const { return on_several_; }
  duration within() const { return options_.within; }
  /// Behind "restarting"; empty without a pause.
  std::string in_words(duration wait) const {
    return wait == duration{}
               ? std::string()
               : fmt::format(" in {}, since the last {} generations have failed within {} of "
                             "their start",
                             troupe::in_words(wait), in_a_row_, troupe::in_words(options_.within));
  }

 private:
  void take_node(const node_name& node) {
    on_several_ = same_in_a_row_ > 1 && (on_several_ || node != node_);
    node_ = node;
  }
  duration pause() const {
    // The bound only keeps the shift in range.
    constexpr std::uint32_t doublings_max = 20;
    if (in_a_row_ < 2)
      return {};
    return std::min<duration>(options_.first * (1 << std::min(in_a_row_ - 2, doublings_max)),
                              options_.most);
  }

  start_pause_options options_;
  std::uint32_t in_a_row_ = 0, same_in_a_row_ = 0;
  std::string how_;
  node_name node_; ///< of the last failure
  bool on_several_ = false;
  std::optional<instant> until_;
};

} // namespace troupe::actors
