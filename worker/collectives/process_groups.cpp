#include "worker/collectives/process_groups.hpp"

#include "worker/progress/own_page.hpp"

#include <array>
#include <cstdio>

#include <sched.h>

namespace troupe::worker {

namespace {

constexpr auto no_row = diag::page_writer::no_row;
/// A place is claimed first, and has its row a moment later.
constexpr row pending = no_row + 1;

struct known_group {
  std::atomic<const void*> group{nullptr};
  std::atomic<row> own{pending};
  std::atomic<row> point_to_point{pending};
};

std::array<known_group, diag::progress_page::communicators_max> known;
std::atomic<unsigned> made{0};

known_group* find(const void* group) {
  for (auto& each : known)
    if (each.group.load(std::memory_order_acquire) == group)
      return &each;
  return nullptr;
}

/// The first free place is everybody's first try, so that two threads of a new group meet in it.
known_group* find_or_claim(const void* group) {
  if (auto* const there = find(group))
    return there;
  for (auto& each : known) {
    const void* now = nullptr;
    if (!each.group.compare_exchange_strong(now, group)) {
      if (now == group)
        return &each;
      continue;
    }
    char name[32];
    std::snprintf(name, sizeof name, "group %u", made.fetch_add(1));
    each.own.store(page().communicator(name, 0, 0), std::memory_order_release);
    return &each;
  }
  return nullptr;
}

row settled(const std::atomic<row>& from) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (const auto there = from.load(std::memory_order_acquire); there != pending)
      return there;
    ::sched_yield();
  }
  return no_row;
}

} // namespace

row row_of(const void* group) {
  const auto* const there = find_or_claim(group);
  return there == nullptr ? no_row : settled(there->own);
}

row point_to_point_row_of(const void* group) {
  auto* const there = find_or_claim(group);
  if (there == nullptr)
    return no_row;
  if (const auto known_row = there->point_to_point.load(std::memory_order_acquire);
      known_row != pending)
    return known_row;
  const auto own = settled(there->own);
  if (own == no_row)
    return no_row;
  char name[diag::communicator_words::name_bytes];
  const auto of = page().name_of(own);
  std::snprintf(name, sizeof name, "%.40s p2p", of.data());
  const auto its = page().communicator(name, 0, 0);
  there->point_to_point.store(its, std::memory_order_release);
  return its;
}

void name_group(const void* group, std::string_view name, std::uint64_t members,
                std::uint64_t members_hash) {
  page().rename(row_of(group), name, members, members_hash);
}

void forget_group(const void* group) {
  auto* const there = find(group);
  if (there == nullptr)
    return;
  for (auto* each : {&there->own, &there->point_to_point})
    if (const auto its = each->exchange(pending); its != pending)
      page().release(its);
  there->group.store(nullptr, std::memory_order_release);
}

} // namespace troupe::worker
