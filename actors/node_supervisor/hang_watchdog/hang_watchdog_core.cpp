#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"

#include "actors/limits.hpp"
#include "actors/words.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// Ranks that stand for so long are looked at along with one that is suspected: it costs little,
/// and the master wants to know of all.
constexpr auto looked_at_along = 300ms;
/// Two reports are at least this far apart.
constexpr auto reports_apart = 50ms;
/// While a rank is suspected its page is read this often: it may go on.
constexpr auto suspect_read_every = 250ms;

} // namespace

hang_watchdog_core::hang_watchdog_core(node_name node, author a, watch_policy policy)
    : node_(std::move(node)), author_(std::move(a)), policy_(policy) {}

// ---- from the agent ----

/// Processes that were watched already are so still: Watched repeats with each start and end.
hang_watchdog_core::effects hang_watchdog_core::watched(instant now, const msg<Watched>& m) {
  effects out;
  const auto about = m.envelope().about;
  if (about < about_)
    return out;
  auto body = m.read();
  std::map<std::uint32_t, watched_rank> ranks;
  std::vector<diag::watched_process> processes;
  for (auto each : body->getProcesses()) {
    if (ranks.size() >= limits::watched_ranks_max)
      break;
    const diag::watched_process p{each.getRank(), each.getLocalRank(), each.getPid(),
                                  body->getWorldSize()};
    auto known = ranks_.find(p.local_rank);
    if (about == about_ && known != ranks_.end() && known->second.what.pid == p.pid) {
      ranks.emplace(p.local_rank, std::move(known->second));
    } else {
      auto& r = ranks[p.local_rank];
      r.what = p;
      r.since = r.changed = now;
    }
    processes.push_back(p);
  }
  if (about != about_)
    answers_ = 0;
  about_ = about;
  world_size_ = body->getWorldSize();
  ended_well_ = body->getEndedWell();
  const bool had_pages = has_pages();
  ranks_ = std::move(ranks);
  series_.reset();
  out.push_back(watch{std::move(processes)});
  if (ranks_.empty()) {
    next_read_.reset();
    report_wanted_ = false;
    // A standstill that was reported of them is over, and no answer need be waited for.
    if (had_pages && ended_well_)
      send_report(out, now);
  } else {
    next_report_ = now + report_period();
    // It may have been answered that they are being ended.
    report_wanted_ |= answers_ != 0;
    next_read_ = now + policy_.read_every;
  }
  return checked(now, std::move(out));
}

// ---- time ----

/// The wake-up itself is the clock by which a pause is seen: of the machine, of this process.
hang_watchdog_core::effects hang_watchdog_core::tick(instant now, duration slept) {
  effects out;
  const auto asleep = slept_ ? slept - *slept_ : duration::zero();
  slept_ = slept;
  const auto due = next_wakeup();
  if (!due)
    return out;
  const auto late = now - *due;
  if (late >= policy_.anew_after || asleep >= policy_.late_by)
    start_anew(out, now, std::max(late, asleep));
  else if (late >= policy_.late_by)
    // On a machine with too much to do this is so often; a standstill must be told all the same.
    for (auto& [local, r] : ranks_)
      r.changed = std::min(now, r.changed + late);
  if (series_ && now >= series_->next) {
    if (series_->question == 0) {
      look_once(out, now);
    } else {
      end_looks(out, now);
    }
  }
  if (next_read_ && now >= *next_read_)
    read_all(out, now);
  return checked(now, std::move(out));
}

void hang_watchdog_core::start_anew(effects& out, instant now, duration away) {
  TROUPE_RARE("hang_watchdog: the machine or this process did not run");
  for (auto& [local, r] : ranks_) {
    r.changed = now;
    r.stopped.reset();
    let_go(r);
    r.busy.forget();
    r.busy_now.reset();
  }
  series_.reset();
  say(out, log::level::debug, "watch_paused",
      fmt::format("this machine or its watchdog did not run for {}; what its ranks may take begins "
                  "anew",
                  troupe::in_words(away)));
}

std::optional<instant> hang_watchdog_core::next_wakeup() const {
  if (ranks_.empty())
    return std::nullopt;
  auto next = next_read_;
  if (series_ && (!next || series_->next < *next))
    next = series_->next;
  return next;
}

void hang_watchdog_core::read_all(effects& out, instant now) {
  next_read_ = now + policy_.read_every;
  out.push_back(read{local_ranks()});
}

// ---- from the host ----

hang_watchdog_core::effects
hang_watchdog_core::pages_read(instant now, const std::vector<diag::page_reading>& readings) {
  effects out;
  for (const auto& reading : readings)
    if (auto r = ranks_.find(reading.local_rank); r != ranks_.end())
      take_page(now, r->second, reading);
  look_where_needed(out, now);
  report_where_needed(out, now);
  schedule_read(now);
  return checked(now, std::move(out));
}

hang_watchdog_core::effects
hang_watchdog_core::looked(instant now, std::uint64_t question,
                           const std::vector<diag::process_look>& looks) {
  effects out;
  if (!series_ || series_->question != question || question == 0) {
    TROUPE_RARE("hang_watchdog: a look comes after it was given up");
    return out;
  }
  for (const auto& each : looks)
    if (auto r = ranks_.find(each.local_rank);
        r != ranks_.end() && r->second.what.pid == each.pid) {
      auto seen = each;
      const auto& page = r->second.page;
      seen.waits_for_input = !page || page->phase_now == diag::phase::input;
      r->second.looks.add(now, seen);
    }
  series_->question = 0;
  ++series_->made;
  series_->next = now + policy_.between_looks;
  if (has_seen_enough())
    end_looks(out, now);
  return checked(now, std::move(out));
}

// ---- looks ----

/// One look tells a stop; to tell motion needs several.
bool hang_watchdog_core::has_seen_enough() const {
  if (series_->made >= policy_.looks)
    return true;
  return std::all_of(series_->local_ranks.begin(), series_->local_ranks.end(), [this](auto local) {
    const auto r = ranks_.find(local);
    return r != ranks_.end() && r->second.looks.moves() == diag::motion::stopped;
  });
}

void hang_watchdog_core::look_where_needed(effects& out, instant now) {
  if (series_)
    return;
  std::vector<std::uint32_t> which;
  // One that is stopped needs one look, and is not kept waiting for the others'.
  for (const auto& [local, r] : ranks_)
    if (r.stopped && is_due(now, r))
      which.push_back(local);
  if (!which.empty())
    return begin_looks(out, now, std::move(which));
  const bool due = std::any_of(ranks_.begin(), ranks_.end(),
                               [&](const auto& each) { return is_due(now, each.second); });
  if (!due && !answer_with_looks_)
    return;
  answer_with_looks_ = false;
  for (const auto& [local, r] : ranks_)
    if (!r.gone && now - still_since(r) >= std::min<duration>(look_at(r), looked_at_along))
      which.push_back(local);
  if (!which.empty())
    begin_looks(out, now, std::move(which));
}

void hang_watchdog_core::begin_looks(effects& out, instant now, std::vector<std::uint32_t> which) {
  for (const auto local : which)
    ranks_[local].looks = {};
  series_ = look_series{std::move(which), 0, 0, now};
  look_once(out, now);
}

void hang_watchdog_core::look_once(effects& out, instant now) {
  series_->question = ++last_question_;
  series_->next = now + policy_.look_within;
  out.push_back(look{series_->question, series_->local_ranks});
}

/// The pages are read once more before anything is said: a rank may have gone on meanwhile.
void hang_watchdog_core::end_looks(effects& out, instant now) {
  const auto which = std::exchange(series_, std::nullopt)->local_ranks;
  for (const auto local : which)
    if (auto r = ranks_.find(local); r != ranks_.end())
      conclude(out, now, r->second);
  report_wanted_ = true;
  read_all(out, now);
}

// ---- reports ----

void hang_watchdog_core::report_where_needed(effects& out, instant now) {
  bool slower = false;
  for (const auto& [local, r] : ranks_)
    slower |= is_slower(r);
  // A few times only: if all ranks are slower than they were, that is how it is now.
  if (!slower)
    early_reports_ = 0;
  else if (early_reports_ < policy_.early_reports &&
           (!last_report_ || now - *last_report_ >= policy_.report_every)) {
    ++early_reports_;
    report_wanted_ = true;
  }
  if (now < next_report_ && !report_wanted_)
    return;
  if (!report_wanted_ && !has_pages())
    next_report_ = now + report_period();
  else
    send_report(out, now);
}

void hang_watchdog_core::schedule_read(instant now) {
  if (ranks_.empty())
    return;
  auto next = std::min(now + policy_.read_every, std::max(next_report_, now + reports_apart));
  for (const auto& [local, r] : ranks_) {
    if (r.gone)
      continue;
    // A limit that has passed already waits for the looks that are under way.
    const auto at = still_since(r) + look_at(r);
    next = std::min(next, at > now ? at : now + suspect_read_every);
    if (is_suspect(r))
      next = std::min(next, now + suspect_read_every);
  }
  next_read_ = std::max(next, now + policy_.read_at_most_every);
}

// ---- from the master ----

hang_watchdog_core::effects hang_watchdog_core::progress_wanted(instant now,
                                                                const msg<ProgressWanted>& m) {
  effects out;
  if (m.envelope().about != about_)
    return out;
  answers_ = std::max(answers_, m.read()->getQuestion());
  // All have ended, or are being ended: the answer is that nothing can be said of them.
  if (ranks_.empty()) {
    send_report(out, now);
    return checked(now, std::move(out));
  }
  answer_with_looks_ = report_wanted_ = true;
  read_all(out, now);
  return checked(now, std::move(out));
}

hang_watchdog_core::effects hang_watchdog_core::stacks_wanted(instant, const msg<StacksWanted>& m) {
  effects out;
  // Of a node whose processes have finished the answer is that there is none.
  if (m.envelope().about != about_)
    return out;
  auto body = m.read();
  const auto within =
      std::chrono::milliseconds(std::clamp<std::uint64_t>(body->getWithinMs(), 50, 60'000));
  out.push_back(dump{body->getDump(), about_, local_ranks(), within});
  return out;
}

hang_watchdog_core::effects hang_watchdog_core::diagnosed(instant, const msg<Diagnosed>& m) {
  effects out;
  if (m.envelope().about == about_)
    say(out, log::level::info, "hang_diagnosed", m.read()->getSentence().cStr());
  return out;
}

hang_watchdog_core::effects hang_watchdog_core::cleared(instant, const msg<Cleared>& m) {
  effects out;
  if (m.envelope().about == about_)
    say(out, log::level::info, "hang_cleared",
        fmt::format("training goes on after {}",
                    troupe::in_words(std::chrono::milliseconds(
                        std::min<std::uint64_t>(m.read()->getAfterMs(), 1u << 31)))));
  return out;
}

hang_watchdog_core::effects hang_watchdog_core::linked(instant now) {
  effects out;
  answers_ = 0;
  if (!has_pages())
    return out;
  report_wanted_ = true;
  read_all(out, now);
  return checked(now, std::move(out));
}

hang_watchdog_core::effects hang_watchdog_core::checked(instant now, effects out) const {
  invariant(ranks_.size() <= limits::watched_ranks_max, "more ranks are watched than there may be");
  invariant(next_read_.has_value() == !ranks_.empty(), "ranks are watched and never read");
  invariant(!series_ || (!series_->local_ranks.empty() && series_->made < policy_.looks),
            "a series of looks that is over, or looks at nothing");
  invariant(!series_ || series_->question <= last_question_, "a look that was not asked for");
  for (const auto& [local, r] : ranks_) {
    invariant(r.what.local_rank == local, "a rank in another's place");
    invariant(r.changed <= now && r.since <= now, "a rank that will change");
    invariant(!r.stopped || *r.stopped <= now, "a rank that will be stopped");
    invariant(!r.gone || !is_suspect(r), "a process is suspected that is gone");
    invariant(!is_suspect(r) || r.looked, "a rank is suspected that was not looked at");
    invariant(is_suspect(r) || r.is == standing::traced || r.look_again_at == duration::zero(),
              "a rank that goes on waits for its next look");
  }
  return out;
}

/// Processes that report nothing give nothing to compare, unless the master asks.
bool hang_watchdog_core::has_pages() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& each) { return each.second.page.has_value(); });
}

} // namespace troupe::actors
