#include "actors/node_supervisor/hang_watchdog/learnt_limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Fewer durations say little about what is usual.
constexpr std::uint64_t enough = 5;
/// A program that makes no steps that are known is measured by its collectives.
constexpr std::uint64_t collectives_for_a_step = 4;
/// What was survived so many steps ago counts half.
constexpr std::uint64_t half_life_steps = 2'000;
/// Where nothing is usual yet, or the program makes no steps that are known.
constexpr duration unlearnt = 10s;
/// A watchdog that begins in the middle of training finds so many steps, of which the first are
/// few.
constexpr std::uint64_t begun_long_ago = 200;

bool makes_steps(const diag::page_view& page) {
  return page.steps_made != 0 || page.fed_by(diag::feed::steps_by_script) ||
         page.fed_by(diag::feed::steps_by_optimizer);
}

std::uint64_t steps_of(const diag::page_view& page) {
  if (makes_steps(page))
    return page.steps_made;
  std::uint64_t entered = 0;
  for (const auto& c : page.communicators)
    entered = std::max(entered, c.entered);
  return entered / collectives_for_a_step;
}

duration times(double factor, std::uint64_t ns) {
  constexpr auto most = std::chrono::duration_cast<std::chrono::nanoseconds>(24h).count();
  const auto bounded = std::min<std::uint64_t>(ns, most);
  return duration(static_cast<duration::rep>(factor * static_cast<double>(bounded)));
}

} // namespace

void learnt_limits::read(const watch_policy& policy, const diag::page_view& page) {
  const auto steps = steps_of(page);
  const auto& now = page.step_durations;
  // All counts were halved, and with them those of the warm-up.
  if (now.total < last_total_)
    for (auto& each : warm_up_.counts)
      each /= 2;
  last_total_ = now.total;
  if (warm_ || steps < policy.warm_up_steps)
    return;
  warm_ = true;
  if (steps < begun_long_ago)
    warm_up_ = now;
}

diag::duration_counts learnt_limits::since_warm_up(const diag::page_view& page) const {
  auto counts = page.step_durations;
  counts.total = 0;
  for (std::size_t i = 0; i < counts.counts.size(); ++i) {
    counts.counts[i] -= std::min(counts.counts[i], warm_up_.counts[i]);
    counts.total += counts.counts[i];
  }
  return counts;
}

void learnt_limits::survived(const diag::page_view& at, duration stood) {
  auto& s = survived_[static_cast<std::size_t>(at.phase_now)];
  const auto steps = steps_of(at);
  s.longest = std::max(faded(s, steps), stood);
  s.at_step = steps;
}

duration learnt_limits::faded(const standstill& s, std::uint64_t steps) {
  const auto halvings = steps > s.at_step ? (steps - s.at_step) / half_life_steps : 0;
  return halvings > 20 ? duration::zero() : s.longest / (1 << halvings);
}

bool learnt_limits::is_warming_up(const watch_policy& policy, const diag::page_view& page) const {
  return steps_of(page) < policy.warm_up_steps;
}

/// The longest of all that is known of it: too late is better than wrong.
duration learnt_limits::limit(const watch_policy& policy, const diag::page_view& page) const {
  if (policy.fixed_limit)
    return *policy.fixed_limit;
  auto limit = policy.floor;
  const auto steps = since_warm_up(page);
  if (is_warming_up(policy, page))
    limit = policy.warm_up_limit;
  else if (steps.total < enough)
    limit = std::max<duration>(limit, unlearnt);
  else
    limit = std::max(limit, times(policy.steps_factor, diag::quantile(steps, 0.99)));

  const auto which = static_cast<std::size_t>(page.phase_now);
  const auto& durations = page.each_phase[which].durations;
  const auto of_phase = [&](duration least) {
    limit = std::max(limit, least);
    if (durations.total != 0)
      limit = std::max(limit, times(policy.phase_factor, diag::quantile(durations, 0.99)));
  };
  if (page.phase_now == diag::phase::checkpoint)
    of_phase(policy.checkpoint_limit);
  else if (page.phase_now == diag::phase::evaluation)
    of_phase(policy.evaluation_limit);
  else if (page.phase_now == diag::phase::user)
    of_phase(policy.user_phase_limit);

  const auto stood = faded(survived_[which], steps_of(page));
  limit =
      std::max(limit, times(policy.survived_factor,
                            static_cast<std::uint64_t>(std::max<duration::rep>(0, stood.count()))));
  return std::min<duration>(limit, policy.learnt_most);
}

duration learnt_limits::step_median(const diag::page_view& page) const {
  return times(1, diag::quantile(since_warm_up(page), 0.5));
}

duration learnt_limits::step_p99(const diag::page_view& page) const {
  return times(1, diag::quantile(since_warm_up(page), 0.99));
}

} // namespace troupe::actors
