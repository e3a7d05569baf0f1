#include "tests/sim/trace.hpp"

#include <fmt/format.h>

namespace troupe::sim {

void trace::line(instant now, const std::string& who, const std::string& what) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  auto text = fmt::format("{:>4}.{:06} {:<7} {}", us.count() / 1'000'000, us.count() % 1'000'000,
                          who, what);
  digest_.take(text);
  ++count_;
  if (on_line)
    on_line(text);
  tail_.push_back(std::move(text));
  if (tail_.size() > kept)
    tail_.pop_front();
}

void trace::mix(std::uint64_t number) {
  for (int i = 0; i < 8; ++i)
    digest_.take(static_cast<std::uint8_t>(number >> (8 * i)));
}

} // namespace troupe::sim
