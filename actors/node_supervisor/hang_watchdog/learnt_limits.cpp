#include "actors/node_supervisor/hang_watchdog/learnt_limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Fewer durations say little about what is usual.
constexpr std::uint64_t enough = 5;
constexpr std::uint64_t enough_silences = 64;
/// A program that makes no steps that are known is measured by its collectives.
constexpr std::uint64_t collectives_for_a_step = 4;
/// After so many collectives without one more step, steps no longer tell how far it is. Layers that
/// are sharded take hundreds in each step, and none of them a thousand.
constexpr std::uint64_t steps_rest_after = 1'000;
/// Of a program without steps: so much of its time passes in silences that are usual.
constexpr double usual_share = 0.9;
/// What was survived so many steps ago counts half.
constexpr std::uint64_t half_life_steps = 2'000;
/// Where little is usual yet: at least and at most.
constexpr duration unlearnt_least = 3s, unlearnt = 10s;
/// A watchdog that begins in the middle of training finds so many steps, of which the first are
/// few.
constexpr std::uint64_t begun_long_ago = 200;

std::uint64_t collectives_of(const diag::page_view& page) {
  std::uint64_t entered = 0;
  for (const auto& c : page.communicators)
    entered = std::max(entered, c.entered);
  return entered;
}

std::uint64_t batches_of(const diag::page_view& page) {
  return page.each_phase[static_cast<std::size_t>(diag::phase::input)].entered;
}

/// A program that never trains is in its evaluation for all of its life: that is no exception.
bool only_evaluates(const diag::page_view& page) {
  const auto entered = [&page](diag::phase p) {
    return page.each_phase[static_cast<std::size_t>(p)].entered;
  };
  return page.steps_made == 0 && entered(diag::phase::backward) == 0 &&
         entered(diag::phase::optimizer) == 0;
}

std::uint64_t more_than(std::uint64_t now, std::uint64_t then) {
  return now > then ? now - then : 0;
}

duration times(double factor, std::uint64_t ns) {
  constexpr auto most = std::chrono::duration_cast<std::chrono::nanoseconds>(24h).count();
  const auto bounded = std::min<std::uint64_t>(ns, most);
  return duration(static_cast<duration::rep>(factor * static_cast<double>(bounded)));
}

} // namespace

void learnt_limits::since_warm_up::read(const diag::duration_counts& now) {
  // All counts were halved, and with them those of the warm-up.
  if (now.total < last_total)
    for (auto& each : left_out.counts)
      each /= 2;
  last_total = now.total;
}

diag::duration_counts learnt_limits::since_warm_up::of(const diag::duration_counts& now) const {
  auto counts = now;
  counts.total = 0;
  for (std::size_t i = 0; i < counts.counts.size(); ++i) {
    counts.counts[i] -= std::min(counts.counts[i], left_out.counts[i]);
    counts.total += counts.counts[i];
  }
  return counts;
}

bool learnt_limits::is_without_steps(const diag::page_view& page) const {
  return page.steps_made == 0 ||
         more_than(collectives_of(page), collectives_then_) >= steps_rest_after;
}

std::uint64_t learnt_limits::steps_of(const diag::page_view& page) const {
  if (!is_without_steps(page))
    return page.steps_made;
  return page.steps_made +
         std::max(more_than(collectives_of(page), collectives_then_) / collectives_for_a_step,
                  more_than(batches_of(page), batches_then_));
}

void learnt_limits::read(const watch_policy& policy, const diag::page_view& page) {
  if (page.steps_made != last_steps_) {
    last_steps_ = page.steps_made;
    collectives_then_ = collectives_of(page);
    batches_then_ = batches_of(page);
  }
  const auto steps = steps_of(page);
  steps_.read(page.step_durations);
  silences_.read(page.silences);
  if (warm_ || is_warming_up(policy, page))
    return;
  warm_ = true;
  if (steps >= begun_long_ago)
    return;
  steps_.warm(page.step_durations);
  silences_.warm(page.silences);
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
  const bool steps_would_be_seen =
      page.fed_by(diag::feed::steps_by_script) || page.fed_by(diag::feed::steps_by_optimizer);
  return steps_of(page) < (page.steps_made == 0 && steps_would_be_seen
                               ? policy.warm_up_without_steps
                               : policy.warm_up_steps);
}

duration learnt_limits::usual_limit(const watch_policy& policy, const diag::page_view& page) const {
  if (is_warming_up(policy, page))
    return policy.warm_up_limit;
  const auto little = [&](std::uint64_t longest) {
    return std::clamp<duration>(times(policy.steps_factor, longest), unlearnt_least, unlearnt);
  };
  if (is_without_steps(page)) {
    const auto silences = silences_.of(page.silences);
    const auto longest = diag::quantile_by_time(silences, usual_share);
    if (silences.total < enough_silences)
      return little(longest);
    // Without collectives no other rank waits for this one: there is no hurry.
    return std::max(collectives_of(page) == 0 ? unlearnt : duration::zero(),
                    times(policy.steps_factor, longest));
  }
  const auto steps = steps_.of(page.step_durations);
  if (steps.total < enough)
    return little(diag::quantile(page.step_durations, 1));
  return times(policy.steps_factor, diag::quantile(steps, 0.99));
}

/// The longest of all that is known of it: too late is better than wrong.
duration learnt_limits::limit(const watch_policy& policy, const diag::page_view& page) const {
  if (policy.fixed_limit)
    return *policy.fixed_limit;
  auto limit = std::max(policy.floor, usual_limit(policy, page));
  const auto which = static_cast<std::size_t>(page.phase_now);
  const auto& durations = page.each_phase[which].durations;
  const auto of_phase = [&](duration least) {
    limit = std::max(limit, least);
    if (durations.total != 0)
      limit = std::max(limit, times(policy.phase_factor, diag::quantile(durations, 0.99)));
  };
  if (page.phase_now == diag::phase::checkpoint)
    of_phase(policy.checkpoint_limit);
  else if (page.phase_now == diag::phase::evaluation && !only_evaluates(page))
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
  return times(1, diag::quantile(steps_.of(page.step_durations), 0.5));
}

duration learnt_limits::step_p99(const diag::page_view& page) const {
  return times(1, diag::quantile(steps_.of(page.step_durations), 0.99));
}

} // namespace troupe::actors
