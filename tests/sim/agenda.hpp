#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace troupe::sim {

/// True time, and what will happen when. What is planned for the same instant happens in the order
/// of planning, so a run depends on nothing but its seed.
class agenda {
 public:
  instant now() const { return now_; }

  void at(instant when, std::function<void()> what) {
    planned_.emplace(std::pair(when < now_ ? now_ : when, ++planned_so_far_), std::move(what));
  }
  void in(duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  /// When the next thing happens; nothing if nothing is planned.
  std::optional<instant> next() const {
    return planned_.empty() ? std::nullopt : std::optional(planned_.begin()->first.first);
  }

  /// Moves time to the next thing and lets it happen. Precondition: next().
  void step() {
    auto first = planned_.extract(planned_.begin());
    now_ = first.key().first;
    first.mapped()();
  }

  /// Nothing planned happens any more, and what it held is let go of, which may plan further
  /// things.
  void forget() {
    while (!planned_.empty())
      std::exchange(planned_, {}).clear();
  }

  /// Moves time forward over nothing. Precondition: next() is not before `to`.
  void pass(instant to) { now_ = to; }

 private:
  instant now_{};
  std::uint64_t planned_so_far_ = 0;
  std::map<std::pair<instant, std::uint64_t>, std::function<void()>> planned_;
};

} // namespace troupe::sim
