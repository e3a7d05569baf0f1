#include "actors/node_supervisor/hang_watchdog/busy_time.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Its usual time follows what it does now so slowly, and much slower where it is slow now.
constexpr std::uint32_t follows_within = 32;
constexpr std::uint32_t follows_when_slow = 256;
constexpr std::uint32_t usual_learnt_after = 6;

/// A pause makes one step long. A step is, from so many buckets above the median on (2^(3/4)); so
/// much of the time in such steps says nothing about the others.
constexpr std::size_t long_from = 3;
constexpr double long_share = 0.2;

bool is_even(const diag::duration_counts& from, const diag::duration_counts& to,
             std::uint64_t took_ns) {
  diag::duration_counts between;
  for (std::size_t i = 0; i < to.counts.size(); ++i) {
    between.counts[i] = to.counts[i] - std::min(from.counts[i], to.counts[i]);
    between.total += between.counts[i];
  }
  if (between.total == 0)
    return true;
  double in_long = 0;
  for (auto i = diag::bucket_of(diag::quantile(between, 0.5)) + long_from; i < to.counts.size();
       ++i)
    in_long += between.counts[i] * static_cast<double>(diag::end_of_bucket(i));
  return in_long < long_share * static_cast<double>(took_ns);
}

} // namespace

std::optional<busy_time::mark> busy_time::mark_of(const diag::page_view& page) {
  if (page.steps_made == 0 || !page.fed_by(diag::feed::collective_ends))
    return std::nullopt;
  mark m{page.steps_made, page.step_ns, 0, page.step_durations};
  for (const auto& c : page.communicators)
    m.waited_ns += c.waited_ns;
  return m;
}

std::optional<busy_time::measured> busy_time::peek(const diag::page_view& page) const {
  const auto to = mark_of(page);
  if (!to || !from_ || to->steps <= from_->steps || to->step_ns <= from_->step_ns)
    return std::nullopt;
  const auto took = to->step_ns - from_->step_ns;
  const auto waited = to->waited_ns > from_->waited_ns ? to->waited_ns - from_->waited_ns : 0;
  const auto steps = to->steps - from_->steps;
  if (!is_even(from_->durations, to->durations, took))
    return std::nullopt;
  // Several collectives at once can come to more than the time itself.
  const auto busy = took - std::min(took, waited);
  return measured{duration(static_cast<duration::rep>(busy / steps)), steps,
                  duration(static_cast<duration::rep>(took))};
}

std::optional<busy_time::measured> busy_time::measure(const diag::page_view& page) {
  auto m = peek(page);
  if (const auto to = mark_of(page); to && (!from_ || to->steps != from_->steps))
    from_ = to;
  if (!m)
    return m;
  ++learnt_;
  const bool slow = learnt_ > usual_learnt_after && m->each > usual_ + usual_ / 4;
  const auto share = slow ? follows_when_slow : std::min(learnt_, follows_within);
  usual_ += (m->each - usual_) / static_cast<duration::rep>(share);
  return m;
}

duration busy_time::usual() const {
  return learnt_ < usual_learnt_after ? duration::zero() : usual_;
}

} // namespace troupe::actors
