#include "probe/ring_program.hpp"

namespace troupe::probe {

std::uint64_t ring_program::bytes(const std::vector<std::uint64_t>& of_sizes) const {
  std::uint64_t all = 0;
  for (const auto size : of_sizes)
    all += of_one_size() * size / n_; // an exchange takes one of n blocks
  return all;
}

exchange ring_program::at(std::uint64_t number) const {
  exchange e;
  if (number < laps_)
    return e;
  const auto k = number - laps_;
  const std::uint64_t around = n_ - 1;
  const auto within = k % of_one_size();
  const auto reduces = 2 * repeats_ * around;
  e.size = k / of_one_size();
  e.gathers = within >= reduces;
  const auto length = e.gathers ? around : 2 * around;
  const auto of_kind = e.gathers ? within - reduces : within;
  const auto step = of_kind % length;
  const auto repeat = of_kind / length;
  e.collective = (2 * e.size + e.gathers) * repeats_ + repeat;
  e.first = step == 0;
  e.last = step + 1 == length;
  e.last_of_kind = e.last && repeat + 1 == repeats_;
  const auto p = static_cast<std::int64_t>(place_);
  const auto s = static_cast<std::int64_t>(step);
  const auto n = static_cast<std::int64_t>(n_);
  if (e.gathers || s < n - 1) {
    e.what = e.gathers ? exchange::kind::take : exchange::kind::add;
    e.gives = p - s;
    e.takes = p - s - 1;
  } else {
    e.what = exchange::kind::take;
    e.gives = p + 1 - (s - (n - 1));
    e.takes = p - (s - (n - 1));
  }
  return e;
}

} // namespace troupe::probe
