#include "actors/master/diagnosis/throughput.hpp"

#include "actors/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe::actors {

void throughput::world(std::uint32_t nodes) {
  nodes_ = nodes;
  window_.reset();
  is_warm_ = told_ = false;
  windows_ = 0;
}

std::optional<throughput::comparison> throughput::add(instant now, std::uint64_t steps) {
  if (nodes_ == 0 || steps == 0)
    return std::nullopt;
  // A process that was started anew counts from nothing.
  if (!window_ || steps < window_->steps) {
    window_ = since{now, steps};
    return std::nullopt;
  }
  const auto made = steps - window_->steps;
  const auto took = now - window_->at;
  if (made < limits::speed_steps_min || took < limits::speed_measured_for)
    return std::nullopt;
  window_ = since{now, steps};
  // The first steps compile kernels and fill caches.
  if (!is_warm_) {
    is_warm_ = true;
    return std::nullopt;
  }
  // What disturbs a world only makes it slower, so its best is what it can do.
  const auto rate = static_cast<double>(made) / std::chrono::duration<double>(took).count();
  auto& best = best_[nodes_];
  best = windows_ == 0 ? rate : std::max(best, rate);
  ++windows_;
  if (best_.size() > limits::speeds_known_max)
    best_.erase(nodes_ == best_.begin()->first ? std::next(best_.begin()) : best_.begin());
  if (told_ || windows_ < limits::speed_windows_min)
    return std::nullopt;
  auto worse = compare();
  told_ = worse.has_value();
  return worse;
}

std::optional<throughput::speed> throughput::measured() const {
  if (windows_ == 0)
    return std::nullopt;
  return speed{nodes_, best_.at(nodes_)};
}

std::optional<throughput::comparison> throughput::compare() const {
  comparison c{*measured(), {}};
  for (const auto& [nodes, steps] : best_)
    if (const speed one{nodes, steps}; nodes < nodes_ && one.node_steps() > c.smaller.node_steps())
      c.smaller = one;
  if (c.now.node_steps() >= c.smaller.node_steps() * limits::speed_worse_below)
    return std::nullopt;
  return c;
}

std::string comparison_in_words(const throughput::comparison& c) {
  return fmt::format("{} nodes make {:.3g} steps a second, {} made {:.3g}: the larger world does "
                     "less as a whole ({:.3g} steps of nodes a second instead of {:.3g})",
                     c.now.nodes, c.now.steps, c.smaller.nodes, c.smaller.steps, c.now.node_steps(),
                     c.smaller.node_steps());
}

} // namespace troupe::actors
