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
  if (!r.page)
    return false;
  const auto& input = r.page->each_phase[static_cast<std::size_t>(diag::phase::input)];
  return r.page->steps_made != 0 || input.entered != 0 ||
         std::any_of(r.page->communicators.begin(), r.page->communicators.end(),
                     [](const auto& c) { return c.entered != 0; });
}

/// A rank may have stood for long in a checkpoint when it is stopped: that time is none of the
/// stop.
instant hang_watchdog_core::still_since(const watched_rank& r) {
  return r.stopped ? std::max(r.changed, *r.stopped) : r.changed;
}

duration hang_watchdog_core::limit_of(const watched_rank& r) const {
  const auto limit = is_fed(r) ? r.limits.limit(policy_, *r.page)
                               : policy_.fixed_limit.value_or(policy_.unfed_look_every);
  return r.stopped && !policy_.fixed_limit ? std::min<duration>(limit, policy_.stopped_limit)
                                           : limit;
}

/// So long it may stand before it is looked at. Of a process that reports nothing each look counts
/// from the one before it.
duration hang_watchdog_core::look_at(const watched_rank& r) const {
  return std::max(limit_of(r), r.look_again_at);
}

bool hang_watchdog_core::is_due(instant now, const watched_rank& r) const {
  return !r.gone && now - still_since(r) >= look_at(r);
}

/// Whatever it does next is judged as if it had never stood.
void hang_watchdog_core::let_go(watched_rank& r) {
  report_wanted_ |= is_suspect(r);
  if (r.is != standing::going)
    r.is.become(standing::going);
  r.look_again_at = {};
  r.looked.reset();
}

/// The kernel's word is read along with each page: a stop is known before anything is due.
void hang_watchdog_core::take_state(instant now, watched_rank& r, char state) {
  // Its number may be another process's later.
  if (r.gone)
    return;
  if (state == 'X' || state == 'Z') {
    r.gone = report_wanted_ = true;
    let_go(r);
    return;
  }
  if (state == 'T') {
    if (r.stopped)
      return;
    r.stopped = now;
    let_go(r);
  } else if (r.stopped) {
    // Its page does not change by that, and its time begins anew.
    r.stopped.reset();
    r.changed = now;
    let_go(r);
  }
}

void hang_watchdog_core::take_page(instant now, watched_rank& r,
                                   const diag::page_reading& reading) {
  take_state(now, r, reading.state);
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

/// By itself: it was no hang, whatever it looked like. A stop by a signal says nothing of what is
/// usual.
void hang_watchdog_core::went_on(watched_rank& r, duration stood) {
  if (is_suspect(r) || (r.looked && stood >= policy_.floor)) {
    TROUPE_RARE("hang_watchdog: a rank that was suspected goes on");
    if (!is_stopped(r.moves))
      r.limits.survived(*r.page, stood);
  }
  let_go(r);
}

/// After the looks at it.
void hang_watchdog_core::conclude(effects& out, instant now, watched_rank& r) {
  // It is gone, or could not be looked at.
  if (!r.looks.has_any() || r.gone)
    return;
  r.moves = r.looks;
  r.looked = now;
  const auto stood = now - still_since(r);
  if (is_in_debugger(r.moves.last())) {
    if (r.is != standing::traced)
      say(out, log::level::debug, "debugger_attached",
          fmt::format("rank {} has a debugger attached: it may stand still", r.what.rank));
    r.is.become(standing::traced);
    r.look_again_at = stood + traced_look_every;
    return;
  }
  // While it was traced its time did not count.
  if (r.is == standing::traced) {
    r.changed = now;
    let_go(r);
    return;
  }
  // Only a stop can be seen of it, and what a user's own limit is about.
  if (!is_fed(r) && !is_stopped(r.moves) &&
      !(policy_.fixed_limit &&
        (diag::stands(r.moves.moves()) || r.moves.moves() == diag::motion::works))) {
    r.changed = now;
    let_go(r);
    return;
  }
  if (stood < limit_of(r))
    return;
  r.is.become(standing::suspected);
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
