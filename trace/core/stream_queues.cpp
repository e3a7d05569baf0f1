#include "trace/core/stream_queues.hpp"

#include <algorithm>

namespace troupe::trace {

std::size_t stream_queues::place_of(const void* context, const void* handle) {
  std::size_t empty = limits::streams_max;
  for (std::size_t at = 0; at < used_; ++at) {
    if (streams_[at].context == context && streams_[at].handle == handle)
      return at;
    if (streams_[at].calls == 0)
      empty = at;
  }
  if (used_ < limits::streams_max) {
    empty = used_++;
  } else if (empty == limits::streams_max) {
    // Calls of several streams in one queue: each is noticed late, and measured as well as others.
    return limits::streams_max - 1;
  }
  streams_[empty] = {};
  streams_[empty].context = context;
  streams_[empty].handle = handle;
  return empty;
}

std::size_t stream_queues::add(std::uint32_t call, const void* context, const void* handle,
                               std::uint64_t launched_ns) {
  const auto at = place_of(context, handle);
  stream& s = streams_[at];
  if (s.calls == 0) {
    s.oldest = call;
    s.oldest_since_ns = launched_ns;
  } else {
    next_[s.newest] = static_cast<std::uint16_t>(call);
  }
  s.newest = call;
  ++s.calls;
  ++calls_;
  return at;
}

void stream_queues::remove_oldest(std::size_t index, std::uint64_t now_ns) {
  stream& s = streams_[index];
  --s.calls;
  --calls_;
  s.oldest = next_[s.oldest];
  s.oldest_since_ns = now_ns;
}

void stream_queues::clear() {
  streams_ = {};
  used_ = calls_ = 0;
}

std::size_t stream_queues::slowest() const {
  auto found = limits::streams_max;
  for (std::size_t at = 0; at < used_; ++at)
    if (streams_[at].calls > 0 && (found == limits::streams_max ||
                                   streams_[at].oldest_since_ns < streams_[found].oldest_since_ns))
      found = at;
  return found;
}

std::uint64_t stream_queues::longest_wait_ns(std::uint64_t now_ns) const {
  const auto at = slowest();
  if (at == limits::streams_max || now_ns < streams_[at].oldest_since_ns)
    return 0;
  return now_ns - streams_[at].oldest_since_ns;
}

std::uint32_t stream_queues::longest_waited_for() const {
  return streams_[slowest()].oldest;
}

} // namespace troupe::trace
