#include "runtime/base/reminder.hpp"

namespace troupe {

namespace {

constexpr duration first = 10s;
constexpr duration second = 30s;
constexpr duration then_every = 60s;

} // namespace

void reminder::begin(instant now) {
  since_ = now;
  next_after_ = first;
}

bool reminder::due(instant now) {
  if (!since_ || now - *since_ < next_after_)
    return false;
  while (now - *since_ >= next_after_)
    next_after_ = next_after_ < second ? second : (next_after_ / then_every + 1) * then_every;
  return true;
}

std::optional<instant> reminder::next() const {
  return since_ ? std::optional(*since_ + next_after_) : std::nullopt;
}

} // namespace troupe
