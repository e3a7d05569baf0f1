#include "diag/progress/page_view.hpp"

#include <algorithm>

namespace troupe::diag {

namespace {

constexpr std::uint64_t members_max = 1u << 24;
constexpr std::uint64_t thread_max = 1u << 22; // PID_MAX_LIMIT of the kernel
constexpr std::uint64_t all_feeds = static_cast<std::uint64_t>(feed::trace) * 2 - 1;

template<class Chars>
std::string text_of(const Chars& from) {
  std::string text;
  for (const auto& each : from) {
    const auto c = each.load(relaxed);
    if (c == '\0' || text.size() + 1 == from.size())
      break;
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

/// A time, or how long something took: nothing is later than now, nor longer than since the start
/// of this clock.
std::uint64_t past(const word& from, std::uint64_t now) {
  return std::min(from.load(relaxed), now);
}

phase_view view_of(const phase_words& from, std::uint64_t now) {
  return {from.entered.load(relaxed), past(from.longest_ns, now), read(from.durations)};
}

communicator_view view_of(const communicator_words& from, std::uint64_t now) {
  communicator_view seen;
  seen.name = text_of(from.name);
  seen.members = std::min(from.members.load(relaxed), members_max);
  // In this order: what is left meanwhile was entered before it.
  seen.left = from.left.load(std::memory_order_acquire);
  seen.entered = from.entered.load(relaxed);
  seen.left = std::min(seen.left, seen.entered);
  seen.entered_ns = past(from.entered_ns, now);
  seen.left_ns = past(from.left_ns, now);
  const auto said = from.kind.load(relaxed);
  seen.ends_known = (said & communicator_words::ends_unknown) == 0;
  const auto kind = said % communicator_words::ends_unknown;
  seen.kind = kind <= static_cast<std::uint64_t>(collective::other) ? static_cast<collective>(kind)
                                                                    : collective::other;
  seen.bytes = from.bytes.load(relaxed);
  seen.waited_ns = past(from.waited_ns, now);
  seen.members_hash = from.members_hash.load(relaxed);
  return seen;
}

} // namespace

std::uint64_t page_view::newest_ns() const {
  auto newest = std::max({step_ns, phase_ns, touched_ns});
  for (const auto& each : communicators)
    newest = std::max({newest, each.entered_ns, each.left_ns});
  return newest;
}

std::optional<page_view> read_page(const progress_page& page, std::uint64_t now) {
  if (page.magic.load(std::memory_order_acquire) != progress_page::magic_now)
    return std::nullopt;
  page_view seen;
  seen.pid = page.pid.load(relaxed);
  seen.feeds = page.feeds.load(relaxed) & all_feeds;
  seen.step = page.step.load(relaxed);
  seen.steps_made = page.steps_made.load(relaxed);
  seen.step_ns = past(page.step_ns, now);
  seen.step_longest_ns = past(page.step_longest_ns, now);
  seen.step_durations = read(page.step_durations);
  const auto which = page.phase_now.load(relaxed);
  seen.phase_now = which < phases ? static_cast<phase>(which) : phase::other;
  seen.phase_ns = past(page.phase_ns, now);
  seen.user_phase = text_of(page.user_phase);
  seen.touched_ns = past(page.touched_ns, now);
  seen.script_thread = std::min(page.script_thread.load(relaxed), thread_max);
  seen.silences = read(page.silences);
  for (std::size_t i = 0; i < phases; ++i)
    seen.each_phase[i] = view_of(page.each_phase[i], now);
  for (const auto& each : page.communicators)
    if (auto view = view_of(each, now); !view.name.empty())
      seen.communicators.push_back(std::move(view));
  return seen;
}

} // namespace troupe::diag
