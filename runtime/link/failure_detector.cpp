#include "runtime/link/failure_detector.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::link {

namespace {

/// A normally distributed gap is longer than the mean and this many standard deviations with a
/// probability of 10^-8.
constexpr double deviations_at_phi_8 = 5.61;
/// What the newest gap weighs: the last thirty or so decide, which is some ten seconds.
constexpr double weight = 1.0 / 16;
/// Perfect regularity is never believed: a sixth of a beat.
constexpr double deviation_min_of_beat = 1.0 / 6;

double nanoseconds(duration d) {
  return static_cast<double>(d.count());
}

} // namespace

failure_detector::failure_detector(const failure_detector_options& o, instant now)
    : options_(o), last_heard_(now), last_sample_(now), mean_(nanoseconds(o.beat_every)),
      variance_(0) {}

/// One-sided on purpose: late signs make it more patient, early ones never make it less so.
void failure_detector::heard(instant now) {
  last_heard_ = std::max(last_heard_, now);
  const auto gap = last_heard_ - last_sample_;
  // Frames that came together are one sign.
  if (gap < options_.beat_every / 2)
    return;
  last_sample_ = last_heard_;
  const double off = nanoseconds(std::max(gap, options_.beat_every)) - mean_;
  mean_ += weight * off;
  variance_ = (1 - weight) * (variance_ + weight * off * off);
}

/// The mean stays: it is about the peer and the network, which have not changed by our pause.
void failure_detector::begin_anew(instant now) {
  last_heard_ = last_sample_ = std::max(last_heard_, now);
}

/// The bound is the lease: however bad the network, the job waits no longer than its user allows.
duration failure_detector::patience() const {
  const double beat = nanoseconds(options_.beat_every);
  const double deviation = std::max(std::sqrt(variance_), deviation_min_of_beat * beat);
  const double believed = mean_ + deviations_at_phi_8 * deviation + nanoseconds(options_.pause);
  return duration(
      static_cast<duration::rep>(std::min(believed, nanoseconds(options_.silent_for_max))));
}

} // namespace troupe::link
