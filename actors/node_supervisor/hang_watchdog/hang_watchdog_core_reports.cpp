// What hang_watchdog_core tells the master, and people.

#include "actors/limits.hpp"
#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"
#include "actors/node_supervisor/hang_watchdog/standing_place.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

std::uint64_t ms_for_report(duration d) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

std::uint32_t us32(duration d) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(d).count(), 0, UINT32_MAX));
}

std::uint32_t ms32(duration d) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ms_for_report(d), UINT32_MAX));
}

std::string start_of(const std::string& text, std::size_t most) {
  return text.substr(0, most);
}

/// As RankProgress.motion has it.
std::uint8_t number_of(const diag::compared_looks& looks) {
  enum : std::uint8_t {
    unknown,
    moves,
    stands,
    spins,
    works,
    starves,
    ends,
    delayed,
    awaits,
    ended,
    locked,
    deadlocked
  };
  switch (looks.moves()) {
  case diag::motion::moves:
    return moves;
  case diag::motion::sleeps:
    return looks.lacks_a_core() ? delayed
           : looks.deadlocked() ? deadlocked
           : looks.locked()     ? locked
                                : stands;
  case diag::motion::stopped:
    return stands;
  case diag::motion::spins:
    return looks.wants_a_core() ? spins : stands;
  case diag::motion::works:
    return works;
  case diag::motion::starves:
    return starves;
  case diag::motion::awaits:
    return awaits;
  case diag::motion::ends:
    return looks.ended() ? ended : ends;
  case diag::motion::unknown:
    break;
  }
  return unknown;
}

duration since_on_page(instant now, std::uint64_t ns) {
  const auto at = instant(std::chrono::duration_cast<duration>(std::chrono::nanoseconds(ns)));
  return ns == 0 || at > now ? duration::zero() : now - at;
}

template<class Texts>
void write_lines(const std::vector<std::string>& from, Texts to) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, start_of(from[i], limits::evidence_line_max));
}

} // namespace

/// So that the master hears about as many reports in a second, however many nodes there are.
duration hang_watchdog_core::report_period() const {
  const auto here = std::max<std::size_t>(1, ranks_.size());
  const double nodes = static_cast<double>(world_size_) / static_cast<double>(here);
  const auto period = std::chrono::duration<double>(nodes / policy_.reports_per_second);
  return std::max(policy_.report_every, std::chrono::duration_cast<duration>(period));
}

void hang_watchdog_core::send_report(effects& out, instant now) {
  using over = ProgressReport::Over;
  report_wanted_ = false;
  next_report_ = now + report_period();
  last_report_ = now;
  bool suspect = false;
  for (auto& [local, r] : ranks_) {
    suspect |= is_suspect(r);
    r.busy_now = r.page ? r.busy.measure(*r.page) : std::nullopt;
  }
  out.push_back(report{
      author_
          .write<ProgressReport>(about_,
                                 [&](ProgressReport::Builder b) {
                                   b.setNode(node_);
                                   b.setSuspect(suspect);
                                   b.setAnswers(answers_);
                                   if (ranks_.empty())
                                     b.setOver(ended_well_ ? over::ENDED_WELL : over::BY_ORDER);
                                   auto list = b.initRanks(static_cast<unsigned>(ranks_.size()));
                                   unsigned i = 0;
                                   for (const auto& [local, r] : ranks_)
                                     write_rank(now, r, list[i++]);
                                 })
          .any()});
}

void hang_watchdog_core::write_rank(instant now, const watched_rank& r,
                                    RankProgress::Builder b) const {
  b.setRank(r.what.rank);
  b.setLocalRank(r.what.local_rank);
  b.setPid(r.what.pid);
  b.setRanForMs(ms_for_report(now - r.since));
  b.setIdleMs(ms_for_report(now - still_since(r)));
  b.setLimitMs(r.gone ? 0 : ms_for_report(limit_of(r)));
  if (r.busy_now) {
    b.setBusyUs(us32(r.busy_now->each));
    b.setBusySteps(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(r.busy_now->steps, UINT32_MAX)));
    b.setBusyForMs(ms32(r.busy_now->within));
    b.setUsualBusyUs(us32(r.busy.usual()));
  }
  if (r.page) {
    const auto& page = *r.page;
    b.setFeeds(is_fed(r) ? page.feeds : 0);
    b.setSteps(page.steps_made);
    b.setStep(page.step);
    b.setPhase(static_cast<std::uint8_t>(page.phase_now));
    b.setUserPhase(page.user_phase);
    b.setPhaseMs(ms_for_report(since_on_page(now, page.phase_ns)));
    b.setStepMs(ms32(r.limits.step_median(page)));
    b.setStepP99Ms(ms32(r.limits.step_p99(page)));
    auto list = b.initCommunicators(static_cast<unsigned>(page.communicators.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      const auto& c = page.communicators[i];
      list[i].setName(c.name);
      list[i].setMembers(static_cast<std::uint32_t>(c.members));
      list[i].setMembersHash(c.members_hash);
      list[i].setEntered(c.entered);
      list[i].setLeft(c.left);
      list[i].setEndsUnknown(!c.ends_known);
      list[i].setKind(static_cast<std::uint8_t>(c.kind));
      list[i].setBytes(c.bytes);
      list[i].setEnteredMs(ms_for_report(since_on_page(now, c.entered_ns)));
      list[i].setWaitedMs(c.waited_ns / 1'000'000);
    }
  }
  if (r.gone)
    b.setState(static_cast<std::uint8_t>('X'));
  // Looks of an earlier standstill say nothing about now.
  if (r.gone || !r.looked || !r.moves.has_any())
    return;
  const auto& last = r.moves.last();
  b.setState(static_cast<std::uint8_t>(last.state));
  b.setCpuPermille(r.moves.cpu_permille());
  b.setIoMoves(r.moves.io_moves());
  b.setTraced(is_in_debugger(last));
  b.setMotion(number_of(r.moves));
  const bool input = r.page && r.page->phase_now == diag::phase::input;
  b.setPlace(start_of(standing_place(last, input), limits::place_max));
  write_lines(last.evidence, b.initEvidence(static_cast<unsigned>(
                                 std::min(last.evidence.size(), limits::evidence_lines_max))));
  write_lines(last.slow_peers, b.initSlowPeers(static_cast<unsigned>(
                                   std::min(last.slow_peers.size(), limits::slow_peers_max))));
}

std::vector<std::uint32_t> hang_watchdog_core::local_ranks() const {
  std::vector<std::uint32_t> all;
  all.reserve(ranks_.size());
  for (const auto& [local, r] : ranks_)
    all.push_back(local);
  return all;
}

std::string hang_watchdog_core::in_words() const {
  if (ranks_.empty())
    return "no training process is watched";
  std::size_t fed = 0, suspects = 0;
  std::uint64_t step = 0;
  for (const auto& [local, r] : ranks_) {
    fed += is_fed(r) ? 1 : 0;
    suspects += is_suspect(r) ? 1 : 0;
    if (r.page)
      step = std::max(step, r.page->step);
  }
  auto text = fmt::format("watches {}", ranks_.size() == 1
                                            ? std::string("1 training process")
                                            : fmt::format("{} training processes", ranks_.size()));
  if (fed == 0)
    return text + ", of which none reports its progress";
  text += fmt::format(", at step {}", step);
  if (suspects != 0)
    text += fmt::format("; {} standing still",
                        suspects == 1 ? "1 is" : fmt::format("{} are", suspects));
  return text;
}

void hang_watchdog_core::say(effects& out, log::level severity, const char* name,
                             std::string text) const {
  out.push_back(note{{severity, name, std::move(text), {}}});
}

} // namespace troupe::actors
