#pragma once

#include "runtime/base/time.hpp"

namespace troupe::link {

/// What is expected of a peer that lives.
struct failure_detector_options {
  /// A peer that has nothing to say shows a sign of life this often.
  duration beat_every;
  /// A pause of the peer that is no death, whatever the network does besides.
  duration pause;
  /// However irregular its signs were, silence of this length is death.
  duration silent_for_max;
};

/// When silence means death: phi-accrual (Hayashibara et al., SRDS 2004) with an acceptable pause.
///
/// The signs of life of a peer that lives come late now and then, how late depends on the network
/// and on the load of both machines. So their gaps are observed, and the silence that is still
/// believed is what a living peer exceeds once in 10^8 gaps (Φ = 8), after a pause. Mean and
/// variance are kept as moving averages: a few numbers for each link instead of a window of
/// samples. docs/adr/0011-membership-is-a-lease.md has the reasons.
///
/// Only lateness teaches: a gap shorter than a beat counts as one beat, since a peer that has just
/// said a lot will not go on so.
class failure_detector {
 public:
  failure_detector(const failure_detector_options& o, instant now);

  /// A sign of life, and what the gap before it tells.
  void heard(instant now);
  /// Nothing could be heard before now, by our own doing: the gap tells nothing about the peer.
  void begin_anew(instant now);

  instant last_heard() const { return last_heard_; }
  /// The silence that is believed before the peer is taken for dead.
  duration patience() const;
  instant dead_at() const { return last_heard_ + patience(); }

 private:
  failure_detector_options options_;
  instant last_heard_;
  instant last_sample_;
  double mean_;     ///< of the gaps, in nanoseconds
  double variance_; ///< of the gaps around their mean
};

} // namespace troupe::link
