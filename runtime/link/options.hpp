#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace troupe::link {

/// The bounds and periods of a link. The defaults are the product's; tests shorten them.
struct options {
  duration handshake_within = limits::handshake_within;
  duration dial_within = limits::dial_within;
  duration beat_every = limits::beat_every;
  /// A silent peer is acted on within this; see failure_detector.
  duration lease = limits::lease;
  duration linger_max = limits::linger_max;
  std::size_t send_queue_max = limits::send_queue_max;
  std::size_t credit_messages = limits::credit_messages;
};

/// For links of a process with so many peers, and for those of its peers: both ends must be told
/// the same number. With a `lease` of the user's own, beats are as frequent as that lease needs.
inline options for_peers(std::size_t peers, std::optional<duration> lease = {}) {
  options o;
  const duration both_ways = 2 * std::chrono::seconds(peers);
  const auto affordable =
      std::max<duration>(limits::beat_every, both_ways / limits::beats_per_second);
  o.lease = lease.value_or(limits::beats_in_a_lease * affordable);
  o.beat_every = std::max<duration>(limits::beat_every,
                                    std::min(affordable, o.lease / limits::beats_in_a_lease));
  return o;
}

/// How long a peer may be silent at most. The acceptor's judgement ends a membership, so it keeps
/// an eighth of the lease for what follows. A dialler that judges only dials again; its peer then
/// sees a closed connection and waits limits::return_within before it acts, which must fit as well.
constexpr duration silent_for_max(const options& o, bool acceptor) {
  return acceptor ? o.lease * 7 / 8 : o.lease * 3 / 4;
}

/// `invalid` if the numbers contradict each other, with a line that says which.
result<void> validate(const options& o);

} // namespace troupe::link
