// What hang_watchdog_core knows of one rank: its page, its limit, and what looks have shown.

#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"
#include "actors/node_supervisor/hang_watchdog/standing_place.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// A debugger may be detached: it is asked again so often.
constexpr auto traced_look_every = 10s;

instant instant_of(std::uint64_t ns) {
  return instant(std::chrono::duration_cast<duration>(std::chrono::nanoseconds(ns)));
}

bool is_stopped(const diag::compared_looks& looks) {
  return looks.moves() == diag::motion::stopped;
}

/// What changes when a process gets on. Its times alone are not enough: a process that writes wrong
/// ones would never be seen to move.
std::uint64_t counted_in(const diag::page_view& page) {
  std::uint64_t sum = page.steps_made + page.step;
  for (const auto& p : page.each_phase)
    sum += p.entered;
  for (const auto& c : page.communicators)
    sum += c.entered + c.left;
  return sum;
}

} // namespace

bool hang_watchdog_core::is_fed(const watched_rank& r) {
  return r.page && (r.page->steps_made != 0 ||
                    std::any_of(r.page->communicators.begin(), r.page->communicators.end(),
                                [](const auto& c) { return c.entered != 0; }));
}

duration hang_watchdog_core::limit_of(const watched_rank& r) const {
  if (is_fed(r))
    return r.limits.limit(policy_, *r.page);
  return policy_.fixed_limit.value_or(policy_.unfed_look_every);
}

/// So long it may stand before it is looked at. Of a process that reports nothing each look counts
/// from the one before it.
duration hang_watchdog_core::look_at(const watched_rank& r) const {
  return std::max(limit_of(r), r.look_again_at);
}

void hang_watchdog_core::take_page(instant now, watched_rank& r,
                                   const diag::page_reading& reading) {
  const auto& page = reading.page;
  // The page of a process that was here before it.
  if (!page || (page->pid != 0 && page->pid != static_cast<std::uint64_t>(r.what.pid)))
    return;
  const bool first = !r.page;
  const auto newest = std::min(now, instant_of(page->newest_ns()));
  if (!first && (newest > r.changed || counted_in(*page) != counted_in(*r.page))) {
    const auto at = newest > r.changed ? newest : now;
    went_on(r, at - r.changed);
    r.changed = at;
  } else if (first) {
    r.changed = std::max(r.changed, newest);
  }
  r.page = page;
  r.limits.read(policy_, *page);
}

/// By itself: what looked like a hang was none. A stop by a signal says nothing of what is usual.
void hang_watchdog_core::went_on(watched_rank& r, duration stood) {
  r.look_again_at = {};
  if (r.suspect || (r.looked && stood >= policy_.floor)) {
    TROUPE_RARE("hang_watchdog: a rank that was suspected goes on");
    if (!is_stopped(r.moves))
      r.limits.survived(*r.page, stood);
    report_wanted_ |= r.suspect;
  }
  r.suspect = false;
  r.looked.reset();
}

/// After the looks at it.
void hang_watchdog_core::conclude(effects& out, instant now, watched_rank& r) {
  // It is gone, or could not be looked at.
  if (!r.looks.has_any())
    return;
  r.moves = r.looks;
  r.looked = now;
  const auto limit = limit_of(r);
  if (is_in_debugger(r.moves.last())) {
    if (!std::exchange(r.debugger_told, true))
      say(out, log::level::debug, "debugger_attached",
          fmt::format("rank {} has a debugger attached: it may stand still", r.what.rank));
    r.suspect = false;
    r.look_again_at = now - r.changed + traced_look_every;
    return;
  }
  // While it was traced its time did not count.
  if (std::exchange(r.debugger_told, false)) {
    r.changed = now;
    r.look_again_at = {};
    return;
  }
  // All that can be seen of it is a stop, and what a user's own limit is about.
  if (!is_fed(r) && !is_stopped(r.moves) &&
      !(policy_.fixed_limit && diag::stands(r.moves.moves()))) {
    r.changed = now;
    return;
  }
  const auto stood = now - r.changed;
  if (stood < limit)
    return;
  r.suspect = true;
  const duration later =
      std::clamp<duration>(stood / 2, policy_.look_again_first, policy_.look_again_most);
  r.look_again_at = stood + later;
}

bool hang_watchdog_core::is_slower(const watched_rank& r) const {
  if (!r.page || r.busy.usual() == duration::zero())
    return false;
  const auto m = r.busy.peek(*r.page);
  return m && static_cast<double>(m->each.count()) >
                  policy_.slower_by * static_cast<double>(r.busy.usual().count());
}

} // namespace troupe::actors
