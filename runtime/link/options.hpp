#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"

namespace troupe::link {

/// The bounds and periods of a link. The defaults are the product's; tests shorten them.
struct options {
  duration handshake_within = limits::handshake_within;
  duration dial_within = limits::dial_within;
  duration beat_every = limits::beat_every;
  duration silent_for_max = limits::silent_for_max;
  duration linger_max = limits::linger_max;
  std::size_t send_queue_max = limits::send_queue_max;
  std::size_t credit_messages = limits::credit_messages;
};

/// `invalid` if the numbers contradict each other, with a line that says which.
result<void> validate(const options& o);

} // namespace troupe::link
