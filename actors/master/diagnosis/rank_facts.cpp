#include "actors/master/diagnosis/rank_facts.hpp"

#include "actors/limits.hpp"
#include "diag/progress/page.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

/// Longer than any job; keeps sums of times from overflowing.
constexpr std::uint64_t most_ms = 10ull * 365 * 24 * 3'600 * 1'000;

duration bounded_time(std::uint64_t ms) {
  return std::chrono::milliseconds(std::min(ms, most_ms));
}

std::string bounded_text(capnp::Text::Reader from, std::size_t most) {
  return std::string(from.cStr(), std::min<std::size_t>(from.size(), most));
}

template<class Lines>
std::vector<std::string> bounded_lines(Lines from, std::size_t most) {
  std::vector<std::string> lines;
  for (auto line : from) {
    if (lines.size() == most)
      break;
    lines.push_back(bounded_text(line, limits::evidence_line_max));
  }
  return lines;
}

template<class Enum>
Enum enum_within(std::uint8_t value, Enum last, Enum otherwise) {
  return value <= static_cast<std::uint8_t>(last) ? static_cast<Enum>(value) : otherwise;
}

} // namespace

std::uint32_t communicator_names::number_of(const std::string& name, std::uint64_t members_hash,
                                            std::uint32_t members) {
  const auto key = std::make_pair(name, members_hash);
  auto known = numbers_.find(key);
  if (known == numbers_.end()) {
    if (names_.size() >= limits::communicators_known_max)
      return static_cast<std::uint32_t>(names_.size() - 1);
    known = numbers_.emplace(key, static_cast<std::uint32_t>(names_.size())).first;
    names_.push_back({name, members_hash, 0});
  }
  auto& c = names_[known->second];
  c.members = std::max(c.members, members);
  return known->second;
}

void communicator_names::clear() {
  names_.clear();
  numbers_.clear();
}

rank_facts gone_rank(instant now, const rank_facts& before, rank_facts last) {
  rank_facts f;
  f.known = true;
  f.at = now;
  f.node = last.node;
  f.feeds = last.feeds;
  f.steps = f.steps_when_entered = last.steps;
  f.state = 'X';
  f.idle = before.is_gone() ? before.idle + (now - before.at) : duration::zero();
  f.rows = std::move(last.rows);
  for (auto& row : f.rows)
    row.left = row.entered;
  return f;
}

rank_facts facts_of(instant now, std::uint32_t node, messages::RankProgress::Reader from,
                    communicator_names& names) {
  rank_facts f;
  f.known = true;
  f.at = now;
  f.node = node;
  f.pid = from.getPid();
  f.feeds = from.getFeeds();
  f.steps = from.getSteps();
  f.step = from.getStep();
  f.phase_now = enum_within(from.getPhase(), diag::phase::user, diag::phase::other);
  f.user_phase = bounded_text(from.getUserPhase(), diag::progress_page::user_phase_bytes);
  f.in_phase = bounded_time(from.getPhaseMs());
  f.idle = bounded_time(from.getIdleMs());
  f.limit = bounded_time(from.getLimitMs());
  f.ran_for = bounded_time(from.getRanForMs());
  f.step_p99 = bounded_time(from.getStepP99Ms());
  f.state = static_cast<char>(from.getState());
  f.cpu_permille = from.getCpuPermille();
  f.io_moves = from.getIoMoves();
  f.traced = from.getTraced();
  f.motion = enum_within(from.getMotion(), rank_motion::deadlocked, rank_motion::unknown);
  f.place = bounded_text(from.getPlace(), limits::place_max);
  f.evidence = bounded_lines(from.getEvidence(), limits::evidence_lines_max);
  f.slow_peers = bounded_lines(from.getSlowPeers(), limits::slow_peers_max);
  constexpr auto tell_ends = static_cast<std::uint64_t>(diag::feed::collective_ends) |
                             static_cast<std::uint64_t>(diag::feed::trace);
  const bool ends = (f.feeds & tell_ends) != 0;
  for (auto c : from.getCommunicators()) {
    if (f.rows.size() == diag::progress_page::communicators_max)
      break;
    communicator_row row;
    row.communicator =
        names.number_of(bounded_text(c.getName(), diag::communicator_words::name_bytes),
                        c.getMembersHash(), c.getMembers());
    row.entered = c.getEntered();
    row.ends_known = ends && !c.getEndsUnknown();
    row.left = row.ends_known ? std::min(c.getLeft(), c.getEntered()) : c.getEntered();
    row.kind = enum_within(c.getKind(), diag::collective::other, diag::collective::other);
    row.bytes = c.getBytes();
    row.in_it = bounded_time(c.getEnteredMs());
    f.rows.push_back(row);
  }
  return f;
}

} // namespace troupe::actors
