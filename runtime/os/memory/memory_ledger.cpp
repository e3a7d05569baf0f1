#include "runtime/os/memory/memory_ledger.hpp"

#include "ckpt/limits.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include <pthread.h>

namespace troupe::os {

namespace {

using word = std::atomic<std::uint64_t>;

timespec from_now(std::chrono::seconds within) {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += within.count();
  return until;
}

/// Holds the lock of a page. The words below it are right at any instruction, so a lock whose owner
/// has died is simply taken over.
class locked {
 public:
  static result<locked> take(pthread_mutex_t& mutex) {
    const auto until = from_now(limits::memory_lock_within);
    // By the clock that may be set: the thread sanitizer knows no other way. An owner lets go
    // within microseconds, or has died, and the kernel says so.
    const int how = pthread_mutex_timedlock(&mutex, &until);
    if (how == EOWNERDEAD)
      pthread_mutex_consistent(&mutex);
    if (how == 0 || how == EOWNERDEAD)
      return locked(mutex);
    return failure(errc::overloaded,
                   fmt::format("another process of this node holds the lock of its memory: {}",
                               std::strerror(how)));
  }
  locked(locked&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  locked& operator=(locked&&) = delete;
  ~locked() {
    if (mutex_ != nullptr)
      pthread_mutex_unlock(mutex_);
  }

 private:
  explicit locked(pthread_mutex_t& mutex) : mutex_(&mutex) {}
  pthread_mutex_t* mutex_;
};

} // namespace

struct memory_ledger::entry {
  std::atomic<std::uint32_t> opened, wanted;
  word snapshot, mapped, backed, in_transit, planned;
};

struct memory_ledger::page {
  static constexpr std::uint64_t magic_value = 0x3172676c707274; // "trplgr1"

  word magic;
  pthread_mutex_t lock;
  std::atomic<std::uint32_t> changed; ///< counts; a process that waits for others sleeps on it
  std::atomic<std::uint32_t> kept, pressed;
  std::array<entry, ranks_max> ranks;
  word replicas_reserved, replicas_backed;
  /// Of the last decision; changed under the lock.
  std::atomic<std::uint32_t> untold;  ///< 1: the user does not know of it yet
  std::atomic<std::uint32_t> told_of; ///< how many snapshots the user was told that there are
  std::uint32_t wanted;
  std::uint64_t wanted_bytes, there_bytes;
  std::array<char, 256> bound;
};

memory_ledger::page& memory_ledger::in() const {
  return *reinterpret_cast<page*>(page_.data());
}

result<shared_memory> memory_ledger::make_page() {
  auto memory = shared_memory::create("troupe-ckpt-ledger", sizeof(page));
  if (!memory)
    return memory;
  auto* const made = new (memory->data()) page{};
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&made->lock, &how);
  pthread_mutexattr_destroy(&how);
  made->magic = page::magic_value;
  return memory;
}

result<memory_ledger> memory_ledger::open(shared_memory memory, room_finder room) {
  memory_ledger opened(std::move(memory), std::move(room));
  if (opened.page_.bytes() != sizeof(page) || opened.in().magic != page::magic_value)
    return failure(errc::invalid, fmt::format("descriptor {} holds no account of a node's memory",
                                              opened.page_.descriptor()));
  return opened;
}

void memory_ledger::opened(std::size_t rank, std::uint64_t backed) {
  auto& e = in().ranks.at(rank);
  e.mapped = 0;
  account(rank, backed, 0);
  e.opened = 1;
}

void memory_ledger::account(std::size_t rank, std::uint64_t backed, std::uint64_t in_transit) {
  auto& e = in().ranks.at(rank);
  const auto before = e.backed.exchange(backed);
  const auto ended = e.in_transit.exchange(in_transit) != 0 && in_transit == 0;
  if (!ended && backed >= before)
    return;
  ++in().changed;
  wake_all(in().changed);
}

std::uint32_t memory_ledger::kept() const {
  return in().kept;
}

std::uint32_t memory_ledger::pressed() const {
  return in().pressed;
}

ckpt::node_memory memory_ledger::read() const {
  ckpt::node_memory node;
  for (const auto& e : in().ranks) {
    auto& r = node.ranks.emplace_back();
    r.opened = e.opened != 0;
    r.wanted = e.wanted;
    r.snapshot = e.snapshot;
    r.mapped = e.mapped;
    r.backed = e.backed;
    r.in_transit = e.in_transit;
    r.planned = e.planned;
  }
  node.replicas_reserved = in().replicas_reserved;
  node.replicas_backed = in().replicas_backed;
  node.kept = in().kept;
  return node;
}

/// Under the lock.
void memory_ledger::write(const ckpt::node_memory& node, const ckpt::memory_answer& a,
                          const memory_room& room) {
  auto& p = in();
  for (std::size_t i = 0; i < node.ranks.size(); ++i)
    p.ranks[i].planned = node.ranks[i].planned;
  p.kept = node.kept;
  if (!a.planned)
    return;
  p.wanted = ckpt::wanted_by_ranks(node);
  p.wanted_bytes = a.wanted_by_all;
  p.there_bytes = a.there_for_all;
  p.bound.fill('\0');
  std::copy_n(room.bound.begin(), std::min(room.bound.size(), p.bound.size() - 1), p.bound.begin());
  // What all ranks get is no news, unless they had less. A refusal is told with each save.
  const auto told = p.told_of == 0 ? p.wanted : p.told_of.load();
  p.untold = node.kept != 0 && node.kept != told ? 1 : 0;
}

result<ckpt::memory_answer> memory_ledger::ask(const declaration& d, bool may_wait,
                                               memory_room& room) {
  const auto lock = locked::take(in().lock);
  if (!lock)
    return tl::make_unexpected(lock.error());
  auto found = room_();
  if (!found)
    return tl::make_unexpected(found.error());
  room = std::move(*found);
  auto& e = in().ranks.at(d.rank);
  e.opened = 1;
  e.wanted = d.wanted;
  e.snapshot = d.snapshot;
  e.mapped = d.mapped;
  e.backed = d.backed;
  auto node = read();
  auto answer = ckpt::decide(node, room.bytes, {d.rank, d.more, d.may_raise, may_wait});
  write(node, answer, room);
  if (answer.verdict == ckpt::memory_verdict::granted)
    e.in_transit = std::max(e.in_transit.load(), d.more);
  else
    ++in().pressed;
  return answer;
}

std::uint64_t memory_ledger::stays_free(const memory_room& now) const {
  return ckpt::headroom_of(read(), now.bytes) / 2;
}

result<bool> memory_ledger::reserve(const declaration& d) {
  const auto until = std::chrono::steady_clock::now() + limits::memory_wait_within;
  for (;;) {
    const auto seen = in().changed.load();
    const auto left = until - std::chrono::steady_clock::now();
    memory_room room;
    const auto answer = ask(d, left > duration::zero(), room);
    if (!answer)
      return tl::make_unexpected(answer.error());
    if (answer->verdict == ckpt::memory_verdict::granted)
      return answer->ample;
    if (answer->verdict == ckpt::memory_verdict::wait) {
      wait_while(in().changed, seen, std::max(left, duration::zero()));
      continue;
    }
    const auto ranks = ckpt::ranks_that_save(read());
    const auto what = kept() != 0 ? fmt::format("the snapshots that there are are being written "
                                                "out, or are used, and one more than {}",
                                                kept())
                      : ranks > 1
                          ? fmt::format("one snapshot of each of the {} ranks of this node", ranks)
                          : std::string("a snapshot of this state");
    return failure(errc::refused,
                   fmt::format("{} needs {} MiB of memory and only {} are left: {}", what,
                               ckpt::mib_needed(answer->needed), answer->there >> 20, room.bound));
  }
}

std::optional<std::string> memory_ledger::notice() {
  auto& p = in();
  if (p.untold == 0)
    return std::nullopt;
  const auto lock = locked::take(p.lock);
  if (!lock || p.untold.exchange(0) == 0)
    return std::nullopt;
  p.told_of = p.kept.load();
  return ckpt::kept_line(p.kept, p.wanted, p.wanted_bytes, p.there_bytes, p.bound.data());
}

result<void> memory_ledger::reserve_replicas(std::uint64_t backed, std::uint64_t more) {
  const auto lock = locked::take(in().lock);
  if (!lock)
    return tl::make_unexpected(lock.error());
  const auto room = room_();
  if (!room)
    return tl::make_unexpected(room.error());
  in().replicas_backed = backed;
  const auto there = ckpt::room_for_replicas(read(), room->bytes);
  if (more > there)
    return failure(errc::refused, fmt::format("{} MiB more memory are needed, and there are {} MiB "
                                              "beside what this node's own snapshots need: {}",
                                              ckpt::mib_needed(more), there >> 20, room->bound));
  in().replicas_reserved = std::max(in().replicas_reserved.load(), backed) + more;
  return {};
}

void memory_ledger::account_replicas(std::uint64_t backed, std::uint64_t reserved) {
  in().replicas_backed = backed;
  in().replicas_reserved = reserved;
}

} // namespace troupe::os
